"use strict";
// Draws the robots of #data, moves them, and plots shares of limits below. Matrices are column by column.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;  // little-endian
const floats = (text) => new Float32Array(bytes(text));
document.title = data.title;
$("title").textContent = data.title;
const motions = data.motions.map((m) => ({ ...m, poses: floats(m.poses), t: floats(m.t) }));
const end = Math.max(...motions.map((m) => m.t[m.t.length - 1]), 0);
for (const m of motions) {
  const name = document.createElement("span"), mark = document.createElement("i");
  name.className = "named";
  mark.style.background = `rgb(${m.color.map((c) => Math.round(255 * c))})`;
  name.append(mark, m.name);
  $("names").append(name, " ");
}

// -- drawing -------------------------------------------------------------------------------------------------------

const canvas = $("room");
const gl = canvas.getContext("webgl", { antialias: true, preserveDrawingBuffer: true });
if (!gl) {
  const told = document.createElement("p");
  told.id = "told";
  told.textContent = "This browser has no WebGL, which the picture needs.";
  canvas.replaceWith(told);
}
const VERTEX = `attribute vec3 p, n; uniform mat4 view, model; varying vec3 light;
void main() { light = mat3(model) * n; gl_Position = view * model * vec4(p, 1.0); }`;
const FRAGMENT = `precision mediump float; varying vec3 light; uniform vec4 color; uniform float flat_; uniform vec3 back;
void main() { vec3 n = normalize(light + vec3(1e-9));
  float s = 0.4 + 0.4 * max(dot(n, normalize(vec3(0.4, -0.5, 0.8))), 0.0) + 0.4 * abs(dot(n, back));
  gl_FragColor = vec4(min(color.rgb * mix(s, 1.0, flat_), 1.0), color.a); }`;

function compiled(kind, text) {
  const shader = gl.createShader(kind);
  gl.shaderSource(shader, text);
  gl.compileShader(shader);
  if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
  return shader;
}

let at = {}, program;
if (gl) {
  program = gl.createProgram();
  gl.attachShader(program, compiled(gl.VERTEX_SHADER, VERTEX));
  gl.attachShader(program, compiled(gl.FRAGMENT_SHADER, FRAGMENT));
  gl.linkProgram(program);
  gl.useProgram(program);
  for (const name of ["view", "model", "color", "flat_", "back"]) at[name] = gl.getUniformLocation(program, name);
  for (const name of ["p", "n"]) at[name] = gl.getAttribLocation(program, name);
}

// corners of triangles, each with the normal of its triangle
function solid(surface) {
  const points = floats(surface.points), faces = new Uint32Array(bytes(surface.faces)), out = new Float32Array(faces.length * 6);
  for (let k = 0; k < faces.length; k += 3) {
    const [a, b, c] = [0, 1, 2].map((i) => points.subarray(3 * faces[k + i], 3 * faces[k + i] + 3));
    const u = b.map((x, i) => x - a[i]), v = c.map((x, i) => x - a[i]);
    const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
    const size = Math.hypot(...n) || 1;
    [a, b, c].forEach((p, i) => out.set([...p, ...n.map((x) => x / size)], 6 * (k + i)));
  }
  return buffer(out, gl.TRIANGLES);
}

function lines(points) {
  const out = new Float32Array(2 * points.length);
  for (let k = 0; k < points.length / 3; k++) out.set(points.slice(3 * k, 3 * k + 3), 6 * k);
  return buffer(out, gl.LINES);
}

function buffer(values, mode) {
  const id = gl.createBuffer();
  gl.bindBuffer(gl.ARRAY_BUFFER, id);
  gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
  return { id, mode, count: values.length / 6 };
}

const I = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];
const grid = [];
const step = data.reach > 3 ? 1 : data.reach > 0.8 ? 0.25 : 0.1, far = Math.ceil((1.6 * data.reach) / step) * step;
for (let x = -far; x <= far + 1e-9; x += step) {
  const [cx, cy] = data.middle.map((c) => Math.round(c / step) * step);
  grid.push(cx + x, cy - far, data.floor, cx + x, cy + far, data.floor, cx - far, cy + x, data.floor, cx + far, cy + x, data.floor);
}
const drawn = gl && { surfaces: data.surfaces.map(solid), grid: lines(grid), axes: [0, 1, 2].map((i) => lines([0, 0, 0, ...[0, 1, 2].map((j) => (i === j ? data.reach / 6 : 0))])) };

// -- camera --------------------------------------------------------------------------------------------------------

const home = { turn: -1.9, rise: 0.4, away: 2.4 * data.radius, look: [...data.middle, data.height] };
let camera = structuredClone(home);

function product(a, b) {
  const c = new Array(16).fill(0);
  for (let i = 0; i < 4; i++) for (let j = 0; j < 4; j++) for (let k = 0; k < 4; k++) c[4 * j + i] += a[4 * k + i] * b[4 * j + k];
  return c;
}

function view(aspect) {
  const { turn, rise, away, look } = camera;
  const back = [Math.cos(rise) * Math.cos(turn), Math.cos(rise) * Math.sin(turn), Math.sin(rise)];
  const right = [-Math.sin(turn), Math.cos(turn), 0];
  const up = [back[1] * right[2] - back[2] * right[1], back[2] * right[0] - back[0] * right[2], back[0] * right[1] - back[1] * right[0]];
  const eye = look.map((x, i) => x + away * back[i]);
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const seen = [];
  for (let j = 0; j < 3; j++) seen.push(right[j], up[j], back[j], 0);
  seen.push(-dot(right, eye), -dot(up, eye), -dot(back, eye), 1);
  const f = Math.min(1, aspect) / Math.tan(0.35), near = away / 100, farthest = away * 20;
  const lens = [f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (farthest + near) / (near - farthest), -1, 0, 0, (2 * farthest * near) / (near - farthest), 0];
  return { matrix: product(lens, seen), right, up, back };
}

const held = new Map();
canvas.addEventListener("pointerdown", (e) => { canvas.setPointerCapture(e.pointerId); held.set(e.pointerId, e); });
for (const gone of ["pointerup", "pointercancel"]) canvas.addEventListener(gone, (e) => held.delete(e.pointerId));
canvas.addEventListener("pointermove", (e) => {
  const before = held.get(e.pointerId);
  if (!before) return;
  const [x, y] = [e.clientX - before.clientX, e.clientY - before.clientY];
  if (held.size > 1) {
    const other = [...held.values()].find((p) => p.pointerId !== e.pointerId);
    const apart = (p) => Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY);
    camera.away *= (apart(before) || 1) / (apart(e) || 1);
  } else if (e.shiftKey || e.buttons & 6) {
    const { right, up } = view(1), scale = camera.away / canvas.clientHeight;
    camera.look = camera.look.map((c, i) => c - scale * (x * right[i] - y * up[i]));
  } else {
    camera.turn -= 0.008 * x;
    camera.rise = Math.max(-1.5, Math.min(1.5, camera.rise + 0.008 * y));
  }
  held.set(e.pointerId, e);
  dirty = true;
});
canvas.addEventListener("contextmenu", (e) => e.preventDefault());
canvas.addEventListener("wheel", (e) => { e.preventDefault(); camera.away *= Math.exp(0.001 * e.deltaY); dirty = true; }, { passive: false });
$("home").addEventListener("click", () => { camera = structuredClone(home); dirty = true; });

// -- time ----------------------------------------------------------------------------------------------------------

let now = 0, playing = end > 0, dirty = true, last = null;
$("time").max = end;
$("bar").classList.toggle("still", !(end > 0));
const label = () => { $("play").textContent = playing ? "pause" : "play"; };
$("play").addEventListener("click", () => { if (!playing && now >= end) now = 0; playing = !playing; last = null; label(); });
$("time").addEventListener("input", (e) => { now = Number(e.target.value); playing = false; dirty = true; label(); });
document.addEventListener("keydown", (e) => {
  if (e.target.tagName === "BUTTON" || e.target.tagName === "SELECT") return;
  if (e.key === " ") { e.preventDefault(); $("play").click(); }
});

// the pose (16,) of a part: between two rows by weights, which is near enough a rotation at 60 rows a second
function pose(m, slot, out) {
  let k = 0, high = m.t.length - 1;
  while (k < high) { const i = (k + high + 1) >> 1; if (m.t[i] <= now) k = i; else high = i - 1; }
  const next = Math.min(k + 1, m.t.length - 1), w = next > k ? Math.min(1, (now - m.t[k]) / (m.t[next] - m.t[k] || 1)) : 0;
  const a = 12 * (k * m.slots + slot), b = 12 * (next * m.slots + slot);
  for (let j = 0; j < 4; j++) for (let i = 0; i < 3; i++) out[4 * j + i] = (1 - w) * m.poses[a + 3 * j + i] + w * m.poses[b + 3 * j + i];
  return out;
}

function draw() {
  const ratio = window.devicePixelRatio || 1, [w, h] = [canvas.clientWidth, canvas.clientHeight].map((x) => Math.max(1, Math.round(x * ratio)));
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches, ground = dark ? 0.11 : 0.97;
  gl.viewport(0, 0, w, h);
  gl.clearColor(ground, ground, ground + 0.02, 1);
  gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
  gl.enable(gl.DEPTH_TEST);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  const { matrix, back } = view(w / h);
  gl.uniformMatrix4fv(at.view, false, matrix);
  gl.uniform3fv(at.back, back);
  const thin = dark ? [0.32, 0.33, 0.36, 1] : [0.8, 0.81, 0.84, 1];
  put(drawn.grid, I, thin, 1);
  drawn.axes.forEach((axis, i) => put(axis, I, [0, 1, 2].map((j) => (i === j ? 0.85 : 0.15)).concat(1), 1));
  const C = [...I];
  for (const clear of [false, true]) {  // what is seen through comes last
    for (const m of motions) for (const part of m.parts) {
      const color = part.color || [...m.color, 1];
      if (color[3] < 1 !== clear) continue;
      put(drawn.surfaces[part.surface], part.slot < 0 ? part.pose : pose(m, part.slot, C), color, 0);
    }
  }
}

function put(thing, model, color, flat) {
  gl.bindBuffer(gl.ARRAY_BUFFER, thing.id);
  for (const [name, start] of [["p", 0], ["n", 12]]) {
    gl.enableVertexAttribArray(at[name]);
    gl.vertexAttribPointer(at[name], 3, gl.FLOAT, false, 24, start);
  }
  gl.uniformMatrix4fv(at.model, false, model);
  gl.uniform4fv(at.color, color);
  gl.uniform1f(at.flat_, flat);
  gl.drawArrays(thing.mode, 0, thing.count);
}

// -- shares of limits ------------------------------------------------------------------------------------------------

const curves = motions.flatMap((m, i) => m.shares.map((s, k) => ({ name: (motions.length > 1 ? m.name + ": " : "") + s.name, t: floats(s.t), y: floats(s.values), k, dash: i })));
const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"], DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];
if (!curves.length) $("shares").style.display = "none";

// the plot's place on its board, and the legend's: beside it, or above it where that is narrow
function places(w, h) {
  const narrow = w < 560, columns = narrow ? Math.max(1, Math.floor((w - 54) / 110)) : 1;
  const top = narrow ? 14 + 15 * Math.ceil(curves.length / columns) : 10;
  const beside = (i) => (narrow ? [46 + 110 * (i % columns), 12 + 15 * Math.floor(i / columns)] : [w - 142, top + 8 + 15 * i]);
  return { left: 46, top, right: narrow ? w - 12 : Math.max(60, w - 150), bottom: h - 24, beside };
}

function plot() {
  const board = $("shares"), ratio = window.devicePixelRatio || 1;
  const [w, h] = [board.clientWidth, board.clientHeight];
  if (!curves.length || !w || !h) return;
  if (board.width !== Math.round(w * ratio) || board.height !== Math.round(h * ratio)) { board.width = Math.round(w * ratio); board.height = Math.round(h * ratio); }
  const pen = board.getContext("2d"), ink = getComputedStyle(document.body).color;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, w, h);
  const { left, top, right, bottom, beside } = places(w, h);
  const high = 1.15, X = (t) => left + ((right - left) * t) / (end || 1), Y = (y) => bottom - ((bottom - top) * Math.min(y, high)) / high;
  pen.font = "12px system-ui, sans-serif";
  pen.fillStyle = pen.strokeStyle = ink;
  pen.lineWidth = 1;
  for (const y of [0, 0.5, 1]) {
    pen.globalAlpha = y === 1 ? 0.9 : 0.25;
    pen.setLineDash(y === 1 ? [4, 3] : []);
    pen.beginPath(); pen.moveTo(left, Y(y)); pen.lineTo(right, Y(y)); pen.stroke();
    pen.globalAlpha = 1;
    pen.fillText(y === 1 ? "limit" : String(y), 8, Y(y) + 4);
  }
  pen.fillText("0", left, h - 8);
  pen.fillText(`${end.toFixed(2)} s`, right - 30, h - 8);
  curves.forEach((c, i) => {
    pen.strokeStyle = pen.fillStyle = COLORS[c.k % COLORS.length];
    pen.setLineDash(DASHES[c.dash % DASHES.length]);
    pen.lineWidth = 1.6;
    pen.beginPath();
    for (let k = 0; k < c.t.length; k++) if (Number.isFinite(c.y[k])) pen.lineTo(X(c.t[k]), Y(c.y[k]));
    pen.stroke();
    const [x, y] = beside(i);
    if (y < bottom + 8) { pen.beginPath(); pen.moveTo(x, y - 4); pen.lineTo(x + 22, y - 4); pen.stroke(); pen.fillText(c.name, x + 28, y); }
  });
  pen.setLineDash([]);
  pen.strokeStyle = ink;
  pen.beginPath(); pen.moveTo(X(now), top); pen.lineTo(X(now), bottom); pen.stroke();
}
$("shares").addEventListener("pointerdown", (e) => {
  const { left, right } = places($("shares").clientWidth, $("shares").clientHeight);
  now = Math.max(0, Math.min(end, ((e.offsetX - left) / (right - left)) * end));
  playing = false; dirty = true; label();
});

// -- the loop --------------------------------------------------------------------------------------------------------

let frames = 0;
function tick(time) {
  if (playing) {
    if (last !== null) now += ((time - last) / 1000) * Number($("speed").value);
    if (now > end) now = 0;
    last = time;
    dirty = true;
  }
  if (dirty) {
    dirty = false;
    if (gl) draw();
    plot();
    $("time").value = now;
    $("now").textContent = `${now.toFixed(3)} s`;
    document.body.dataset.frames = String(++frames);
  }
  requestAnimationFrame(tick);
}
window.addEventListener("resize", () => { dirty = true; });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { dirty = true; });
label();
requestAnimationFrame(tick);
