"""Print what makes a shell complete commands, options, tasks and agents, for example:

./isaaclab.sh -p scripts/completion.py bash >> ~/.bashrc
"""

from importlib import import_module

from epo_lab.configs.names import agent_names, task_table

from .arguments import Parser
from .main import COMMANDS

SHELLS = ("bash", "zsh", "fish")

BASH = """_epo_lab() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command="" token
  for token in "${{COMP_WORDS[@]}}"; do
    token=${{token##*/}}
    case "${{token%.py}}" in {alternatives}) command=${{token%.py}}; break ;; esac
  done
  case "$previous" in
    --task|--tasks) COMPREPLY=($(compgen -W "{tasks}" -- "$word")); return ;;
    --agent) COMPREPLY=($(compgen -W "{agents}" -- "$word")); return ;;
    --profile) COMPREPLY=($(compgen -W "cpu gpu paper" -- "$word")); return ;;
  esac
  case "$command" in
{cases}
    *) [[ ${{COMP_WORDS[0]##*/}} == epo-lab ]] && COMPREPLY=($(compgen -W "{commands}" -- "$word")) ;;
  esac
}}
complete -o default -F _epo_lab epo-lab isaaclab.sh ./isaaclab.sh
"""


def make_parser() -> Parser:
    """Return the parser of this command."""
    parser = Parser(description=__doc__)
    parser.add_argument("shell", choices=SHELLS, help="which shell")
    return parser


def options(command: str) -> list[str]:
    """Return the long options of a command."""
    parser = import_module(f"epo_lab.cli.{command}").make_parser()
    return [option for option in parser._option_string_actions if option.startswith("--")]


def bash() -> str:
    """Return the completion of bash, which zsh understands too."""
    cases = [f'    {name}) COMPREPLY=($(compgen -W "{" ".join(options(name))}" -- "$word")) ;;' for name in COMMANDS]
    return BASH.format(
        alternatives="|".join(COMMANDS),
        tasks=" ".join(task_table()),
        agents=" ".join(agent_names()),
        commands=" ".join(COMMANDS),
        cases="\n".join(cases),
    )


def fish() -> str:
    """Return the completion of fish, for the command ``epo-lab``."""
    lines = [
        f"complete -c epo-lab -f -n __fish_use_subcommand -a {name} -d '{text}'" for name, text in COMMANDS.items()
    ]
    for name in COMMANDS:
        seen = f"'__fish_seen_subcommand_from {name}'"
        lines += [f"complete -c epo-lab -n {seen} -l {option.removeprefix('--')}" for option in options(name)]
    values = {"task": " ".join(task_table()), "agent": " ".join(agent_names()), "profile": "cpu gpu paper"}
    lines += [f"complete -c epo-lab -l {option} -x -a '{words}'" for option, words in values.items()]
    return "\n".join(lines) + "\n"


def main(words: list[str] | None = None) -> int:
    """Parse the command line and print the completion."""
    shell = make_parser().parse_args(words).shell
    first = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    print(fish() if shell == "fish" else first + bash(), end="")
    return 0
