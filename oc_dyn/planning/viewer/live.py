"""od.view(live=True): the same picture from a server on this computer, which scripts can move while it is seen."""

from __future__ import annotations

import time
from threading import Event, RLock, Thread
from types import TracebackType
from typing import Any

import numpy as np

from ...errors import ModelError
from ...interop import quaternion_of
from ...types import Array
from ...validation import number
from .drawing import Drawing, Drawn

_RATE = 30.0  # frames a second
_BACK = (-0.298, -0.872, 0.389)  # towards the camera
_SPEEDS = ("0.1", "0.25", "0.5", "1", "2")


class LiveView:
    """Motions at the address `url` of this computer, with controls in the browser; viser serves them until stop().

    duration [s]: of the longest motion. time [s]: what is shown. notes: what of the robot is not shown, and why. It is
    a context manager, too: with od.view(..., live=True) as shown: shown.wait().
    """

    def __init__(self, drawing: Drawing, title: str, notes: tuple[str, ...]) -> None:
        try:
            import viser
        except ImportError:
            how = 'pip install "oc-dyn[live]", or leave live out: a page of its own needs nothing'
            raise ModelError(title, [f"live views are served by viser, which is not installed; {how}"]) from None
        self.notes = notes
        self.duration = max(float(x.t[-1]) for x in drawing.motions)
        self.time, self.playing, self.speed = 0.0, self.duration > 0, 1.0
        self._motions, self._lock, self._ended = drawing.motions, RLock(), Event()
        self.server: Any = viser.ViserServer(host="127.0.0.1", port=_free_port(), label=title, verbose=False)
        self.url = f"http://127.0.0.1:{self.server.get_port()}"
        self._moving: list[list[tuple[Any, int]]] = []
        self._build(drawing)
        self.seek(0.0)
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    # -- for scripts ------------------------------------------------------------------------------------------------

    def seek(self, t: float) -> None:
        """Show the time t [s]; beyond the end of a motion, its end."""
        t = float(np.clip(number("seek: t", t), 0.0, self.duration))
        with self._lock, self.server.atomic():
            self.time = t
            for motion, handles in zip(self._motions, self._moving, strict=True):
                poses = _between(motion, t)
                for handle, slot in handles:
                    handle.position = tuple(poses[slot, :3, 3])
                    handle.wxyz = tuple(quaternion_of(poses[slot, :3, :3]))
            if self._slider is not None:
                self._slider.value = t

    def play(self, speed: float = 1.0) -> None:
        """Go on, so many times as fast as the motion is, from the start after its end."""
        self.speed, self.playing = number("play: speed", speed, above=0), self.duration > 0

    def pause(self) -> None:
        """Stand still."""
        self.playing = False

    def wait(self) -> None:
        """Return when it was stopped, or after an interrupt from the keyboard, which stops it."""
        try:
            while not self._ended.wait(0.2):
                pass
        except KeyboardInterrupt:
            self.stop()

    def stop(self) -> None:
        """End the server; what was stopped stays so."""
        if not self._ended.is_set():
            self._ended.set()
            self._thread.join()
            self.server.stop()

    def __enter__(self) -> LiveView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<oc_dyn.LiveView at {self.url}{' (stopped)' if self._ended.is_set() else ''}>"

    # -- what viser is told -----------------------------------------------------------------------------------------

    def _build(self, drawing: Drawing) -> None:
        """Surfaces and controls."""
        scene, low, high = self.server.scene, drawing.low, drawing.high
        scene.set_up_direction("+z")
        wide, middle = 3.2 * drawing.size, (low + high) / 2
        away = 2.4 * max(float(np.linalg.norm(high - low)) / 2, 1e-2)
        camera = self.server.initial_camera  # as of the page
        camera.position, camera.look_at = tuple(middle + away * np.array(_BACK)), tuple(middle)
        floor = (float(middle[0]), float(middle[1]), min(float(low[2]), 0.0))
        scene.add_grid("/grid", width=wide, height=wide, cell_size=wide / 20, section_size=wide / 4, position=floor)
        for number_of, motion in enumerate(drawing.motions):
            handles = []
            for k, part in enumerate(motion.parts):
                points, faces = drawing.surfaces[part.surface]
                rgba = part.color or (*motion.color, 1.0)
                pose = np.eye(4) if part.pose is None else part.pose
                handle = scene.add_mesh_simple(
                    f"/motion_{number_of}/part_{k}", points.astype(np.float32), faces.astype(np.uint32),
                    color=tuple(round(255 * c) for c in rgba[:3]), opacity=rgba[3] if rgba[3] < 1 else None,
                    flat_shading=True, side="double", position=tuple(pose[:3, 3]),
                    wxyz=tuple(quaternion_of(pose[:3, :3])),
                )  # fmt: skip
                if part.slot >= 0:
                    handles.append((handle, part.slot))
            self._moving.append(handles)
        self._slider: Any = None
        if self.duration > 0:
            self._controls()

    def _controls(self) -> None:
        gui = self.server.gui
        step = self.duration / 1000
        self._slider = gui.add_slider("time [s]", min=0.0, max=self.duration, step=step, initial_value=0.0)
        button = gui.add_button("play or pause")
        speeds = gui.add_dropdown("speed", _SPEEDS, initial_value="1")

        def sought(event: Any) -> None:
            if event.client is not None:  # not by seek
                self.pause()
                self.seek(self._slider.value)

        def pressed(_event: Any) -> None:
            self.playing = not self.playing

        def chosen(_event: Any) -> None:
            self.speed = float(speeds.value)

        self._slider.on_update(sought)
        button.on_click(pressed)
        speeds.on_update(chosen)

    def _run(self) -> None:
        """Let the time go on."""
        before = time.monotonic()
        while not self._ended.wait(1 / _RATE):
            now = time.monotonic()
            if self.playing:
                t = self.time + self.speed * (now - before)
                self.seek(0.0 if t > self.duration else t)
            before = now


def _between(motion: Drawn, t: float) -> Array:
    """(slots, 4, 4) poses at a time: positions by weights, rotations of the nearest row."""
    k = int(np.clip(np.searchsorted(motion.t, t, side="right") - 1, 0, len(motion.t) - 1))
    after = min(k + 1, len(motion.t) - 1)
    wide = motion.t[after] - motion.t[k]
    weight = min((t - motion.t[k]) / wide, 1.0) if wide > 0 else 0.0
    out = np.array(motion.poses[k if weight < 0.5 else after])
    out[:, :3, 3] = (1 - weight) * motion.poses[k, :, :3, 3] + weight * motion.poses[after, :, :3, 3]
    return out


def _free_port() -> int:
    """A port that nothing listens at."""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
