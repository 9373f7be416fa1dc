"""Watch a task: where the web viewer listens, where it looks from, and what it says about the agents."""

from __future__ import annotations

import math
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from epo_lab.base.errors import UserError
from epo_lab.evaluation.scores import agent_name
from epo_lab.runner.folder import CENSUS
from epo_lab.runner.records import read_records

from .video import views_of

HOST, PORT = "127.0.0.1", 8080
UNKNOWN = (150, 150, 150)
"""Colour of an agent whose fitness is not known."""
BEACON = 0.07
"""Radius of the coloured sphere above a robot [m]; the master's is twice as large."""


ABOVE = 0.8
"""Height of a name above what the camera looks at [m]."""
MOST_LABELS = 64
"""Environments that get a name; more would hide the robots."""
ALL = "all environments"
"""What the viewer looks at until somebody chooses one."""
LEGEND = "dark is worst, yellow is best, grey is not known yet; \u2605 is the master"
FOCAL_LENGTH = 20.0
"""Focal length of the viewer's camera [mm]; Isaac Lab's 12 distorts what is near the edge."""


def wants(viz: str | None, name: str) -> bool:
    """Return whether a viewer is among those that were asked for."""
    return viz is not None and name in viz.split(",")


def check_port(host: str, port: int) -> None:
    """Raise a :class:`UserError` if nothing can listen there; the viewer would take another port without a word."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot listen on {host}:{port} ({reason}): choose another --port or --host") from None


def web_viewer_cfg(env_cfg: Any, host: str, port: int) -> Any:
    """Return the config of the web viewer, with all environments in its picture."""
    from isaaclab_visualizers.viser import ViserVisualizerCfg

    shown = "localhost" if host == HOST else host
    cfg = ViserVisualizerCfg(bind_address=host, display_address=shown, port=port, verbose=False)
    cfg.eye, cfg.lookat = overview(env_cfg)
    cfg.focal_length = FOCAL_LENGTH
    return cfg


def overview(env_cfg: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return where to stand and what to look at to have all environments in the picture [m]."""
    view = next(iter(views_of(env_cfg).values()))
    # environments stand in a grid around the origin: the farther out the outer ones, the farther away the eye
    outer = 0.5 * (math.ceil(math.sqrt(env_cfg.scene.num_envs)) - 1) * env_cfg.scene.env_spacing
    away = 1.4 + 2.7 * outer / math.hypot(*view.eye)
    return tuple(away * value for value in view.eye), view.target


def url(host: str, port: int) -> str:
    """Return the address for the user's browser."""
    return f"http://{'localhost' if host in (HOST, '0.0.0.0') else host}:{port}"


def fitness_of(folder: Path, iteration: int) -> list[float | None]:
    """Return every agent's fitness at the last census before a checkpoint; nothing if there was none."""
    # the algorithm counts finished iterations, a checkpoint is named by the last one
    records = [record for record in read_records(folder / CENSUS) if record["iteration"] <= iteration + 1]
    return records[-1]["fitness"] if records else []


def label_texts(agents: Sequence[int], fitness: Sequence[float | None]) -> list[str]:
    """Return what stands above each robot."""
    texts = []
    for agent in agents:
        value = fitness[agent] if agent < len(fitness) else None
        texts.append(agent_name(agent) + ("" if value is None else f", fitness {value:.4g}"))
    return texts


def fitness_colors(agents: Sequence[int], fitness: Sequence[float | None]) -> list[tuple[int, int, int]]:
    """Return a colour for each agent, from dark (worst of the population) to yellow (best)."""
    from matplotlib import colormaps

    known = [value for value in fitness if value is not None]
    low, span = min(known, default=0.0), max(known, default=0.0) - min(known, default=0.0)
    colors = []
    for agent in agents:
        value = fitness[agent] if agent < len(fitness) else None
        if value is None:
            colors.append(UNKNOWN)
            continue
        rgba = colormaps["viridis"]((value - low) / span if span > 0 else 1.0)
        colors.append(tuple(round(255 * part) for part in rgba[:3]))
    return colors


class Focus:
    """A choice of the web viewer: look at all environments, or go along with one."""

    def __init__(self, server: Any, env_cfg: Any, num_envs: int) -> None:
        """Offer the choice.

        Args:
            server: Server of the web viewer.
            env_cfg: Config of the environment.
            num_envs: Number of environments to choose from.
        """
        self._server = server
        self._overview = overview(env_cfg)
        self._eye = next(iter(views_of(env_cfg).values())).eye
        self._names = [f"environment {number}" for number in range(num_envs)]
        self._choice = server.gui.add_dropdown("Look at", [ALL, *self._names], initial_value=ALL)
        self._chosen, self._place = ALL, (0.0, 0.0, 0.0)

    def update(self, places: Sequence[Sequence[float]]) -> None:
        """Move the cameras: to what was chosen just now, then along with it, as far as it has gone.

        Args:
            places: Where to look for each environment [m].
        """
        before, self._chosen = self._chosen, self._choice.value
        if self._chosen == ALL:
            if before != ALL:
                self._look(*self._overview)
            return
        place = tuple(places[self._names.index(self._chosen)])
        if before != self._chosen:
            self._look(_sum(place, self._eye), place)
        elif place != self._place:
            self._shift(tuple(new - old for new, old in zip(place, self._place, strict=True)))
        self._place = place

    def _look(self, eye: Sequence[float], target: Sequence[float]) -> None:
        for client in self._server.get_clients().values():
            client.camera.position, client.camera.look_at = eye, target

    def _shift(self, way: Sequence[float]) -> None:
        # whoever has turned the picture keeps the angle
        for client in self._server.get_clients().values():
            eye, target = _sum(client.camera.position, way), _sum(client.camera.look_at, way)
            client.camera.position, client.camera.look_at = eye, target


def _sum(first: Sequence[float], second: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(a) + float(b) for a, b in zip(first, second, strict=True))


class Labels:
    """Names and coloured beacons above the robots in the web viewer, and a choice of whom to follow."""

    def __init__(self, env: Any, agents: Sequence[int], fitness: Sequence[float | None]) -> None:
        """Put them there.

        Args:
            env: The environment, with the web viewer open.
            agents: Agent of each environment.
            fitness: Fitness of all agents of the population; may be empty.
        """
        self._env = env
        self._view = next(iter(views_of(env.cfg).values()))
        self._agents = list(agents)[:MOST_LABELS]
        self._fitness: Sequence[float | None] | None = None
        self._nodes: list[tuple[Any, Any]] = []
        servers = _servers(env)
        self._focus = [Focus(server, env.cfg, len(self._agents)) for server in servers]
        self._panels = [server.gui.add_markdown("") for server in servers]
        self.tell(fitness)
        self.update()

    def tell(self, fitness: Sequence[float | None]) -> None:
        """Show the fitness of all agents, if it is news; a node of the same name replaces the one that was there."""
        if fitness == self._fitness:
            return
        self._fitness, self._nodes = fitness, []
        texts, colors = label_texts(self._agents, fitness), fitness_colors(self._agents, fitness)
        lines = [f"- environment {number}: {text}" for number, text in enumerate(texts)]
        for server, panel in zip(_servers(self._env), self._panels, strict=True):
            for number, (agent, text, color) in enumerate(zip(self._agents, texts, colors, strict=True)):
                radius = 2.0 * BEACON if agent == 0 else BEACON
                beacon = server.scene.add_icosphere(f"/agents/{number}/beacon", radius, color)
                mark = "\u2605 " if agent == 0 else ""
                label = server.scene.add_label(f"/agents/{number}/label", mark + text, anchor="bottom-center")
                self._nodes.append((beacon, label))
            panel.content = f"**Agents**, colour by fitness: {LEGEND}\n\n" + "\n".join(lines)

    def update(self) -> None:
        """Go along with the robots."""
        if not self._nodes:
            return
        places = self._env.scene.env_origins.clone()
        if self._view.follow is not None:
            places[:, :2] = self._env.scene[self._view.follow].data.root_pos_w.torch[:, :2]
        places[:, 2] += self._view.target[2] + ABOVE
        named = places[: len(self._agents)].tolist()
        for place, (beacon, label) in zip(named * len(self._panels), self._nodes, strict=True):
            beacon.position = place
            label.position = (place[0], place[1], place[2] + 2.5 * BEACON)
        for focus in self._focus:
            focus.update([(x, y, z - ABOVE) for x, y, z in named])


def _servers(env: Any) -> list[Any]:
    """Return the servers of the web viewers that are open."""
    viewers = [getattr(visualizer, "_viewer", None) for visualizer in env.sim.visualizers]
    return [viewer._server for viewer in viewers if hasattr(viewer, "_server")]
