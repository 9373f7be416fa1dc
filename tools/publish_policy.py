"""Put the policy of a run into the package, for ``play.py --checkpoint pretrained``:

./isaaclab.sh -p tools/publish_policy.py RUN_FOLDER_OR_CHECKPOINT --origin "3 M steps of PPO, 512 environments; ..."
"""

import sys
from pathlib import Path

from epo_lab.base.errors import UserError, exit_on_user_error
from epo_lab.cli.arguments import Parser


def main() -> int:
    """Parse the command line and write the file."""
    parser = Parser(description=__doc__)
    parser.add_argument("checkpoint", type=Path, help="a checkpoint, or a run folder (its last one)")
    parser.add_argument("--origin", required=True, help="how it was trained and what it reaches")
    args = parser.parse_args()
    with exit_on_user_error("publish_policy"):
        from epo_lab.runner.checkpoint import find_checkpoint
        from epo_lab.runner.folder import read_manifest, read_settings
        from epo_lab.runner.pretrained import pack

        path = find_checkpoint(str(args.checkpoint), root=Path(), task="")
        manifest = read_manifest(path.parent)
        if "task" not in manifest:
            raise UserError(f"{path.parent} is no run folder: it has no run.json")
        agent = manifest["metadata"]["agent"]
        written = pack(path, read_settings(path.parent), task=manifest["task"], agent=agent, origin=args.origin)
        print(f"{written}: {written.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
