import { between, type CaptchaRandom } from './captcha-random.ts';
import { pickGround, type Palette } from './palette.ts';
import type { Size } from './place-icons.ts';
import type { Backdrop } from './style.ts';

type DrawBackdrop = (random: CaptchaRandom, size: Size, palette: Palette) => string;

/** Draws what lies under everything. */
export function drawBackdrop(
  random: CaptchaRandom,
  backdrop: Backdrop,
  size: Size,
  palette: Palette,
): string {
  return `<rect width="100%" height="100%" fill="${pickGround(random, palette)}"/>${drawings[backdrop](random, size, palette)}`;
}

const integer = (random: CaptchaRandom, min: number, max: number): number =>
  Math.round(between(random, min, max));

const drawings: Readonly<Record<Backdrop, DrawBackdrop>> = {
  patches: (random, size, palette) => {
    const patch = (): string =>
      `<ellipse cx="${integer(random, 0, size.width)}" cy="${integer(random, 0, size.height)}" rx="${integer(random, 30, 110)}" ry="${integer(random, 20, 80)}" transform="rotate(${integer(random, -20, 20)})" fill="${pickGround(random, palette)}" opacity=".7"/>`;
    return repeat(14, patch);
  },
  clouds: (random, size, palette) => {
    const cloud = (i: number): string => {
      const tint = pickGround(random, palette);
      return `<radialGradient id="c${i}"><stop stop-color="${tint}"/><stop offset="1" stop-color="${tint}" stop-opacity="0"/></radialGradient><circle cx="${integer(random, 0, size.width)}" cy="${integer(random, 0, size.height)}" r="${integer(random, 60, 170)}" fill="url(#c${i})"/>`;
    };
    return repeat(8, cloud);
  },
  stripes: (random, _size, palette) => {
    const angle = random() * 2 * Math.PI;
    const step = between(random, 36, 90);
    return `<linearGradient id="s" gradientUnits="userSpaceOnUse" x2="${Math.round(step * Math.cos(angle))}" y2="${Math.round(step * Math.sin(angle))}" spreadMethod="repeat">${drawStops(random, palette)}</linearGradient><rect width="100%" height="100%" fill="url(#s)"/>`;
  },
  rings: (random, size, palette) =>
    `<radialGradient id="r" gradientUnits="userSpaceOnUse" cx="${integer(random, 0, size.width)}" cy="${integer(random, 0, size.height)}" r="${integer(random, 34, 90)}" spreadMethod="repeat">${drawStops(random, palette)}</radialGradient><rect width="100%" height="100%" fill="url(#r)"/>`,
  dots: (random, _size, palette) => {
    const step = integer(random, 26, 46);
    const [rotation, skew] = [integer(random, 0, 90), integer(random, -25, 25)];
    return `<pattern id="d" width="${step}" height="${step}" patternUnits="userSpaceOnUse" patternTransform="rotate(${rotation}) skewX(${skew})"><circle cx="${step / 2}" cy="${step / 2}" r="${Math.round(step * between(random, 0.22, 0.45))}" fill="${pickGround(random, palette)}"/></pattern><rect width="100%" height="100%" fill="url(#d)"/>`;
  },
  grid: (random, size, palette) => drawGrid(random, size, palette),
  facets: (random, size, palette) => drawFacets(random, size, palette),
};

/** The stops of a gradient that repeats: two or three bands. */
function drawStops(random: CaptchaRandom, palette: Palette): string {
  const limits = random() < 0.5 ? [between(random, 0.3, 0.7)] : [between(random, 0.25, 0.4), 0.7];
  let stops = '';
  let from = 0;
  for (const to of [...limits, 1]) {
    const tint = pickGround(random, palette);
    stops += `<stop offset="${from.toFixed(2)}" stop-color="${tint}"/><stop offset="${to.toFixed(2)}" stop-color="${tint}"/>`;
    from = to;
  }
  return stops;
}

/** Two sets of lines that meet at two points beyond the image, as on a floor. */
function drawGrid(random: CaptchaRandom, { width, height }: Size, palette: Palette): string {
  const centre = { x: width / 2, y: height / 2 };
  const thickness = between(random, 1.5, 4).toFixed(1);
  const direction = random() * Math.PI;
  const drawFan = (towards: number): string => {
    const distance = between(random, 350, 900);
    const x = centre.x + distance * Math.cos(towards);
    const y = centre.y + distance * Math.sin(towards);
    const half = 500 / distance;
    let path = '';
    const count = integer(random, 18, 30);
    for (let i = 0; i <= count; i++) {
      const angle = towards + Math.PI - half + (2 * half * i) / count;
      path += `M${Math.round(x)} ${Math.round(y)}l${Math.round(1_500 * Math.cos(angle))} ${Math.round(1_500 * Math.sin(angle))}`;
    }
    return path;
  };
  return `<path d="${drawFan(direction)}${drawFan(direction + between(random, 1.2, 1.9))}" fill="none" stroke="${pickGround(random, palette)}" stroke-width="${thickness}"/>`;
}

/** A net of triangles. */
function drawFacets(random: CaptchaRandom, { width, height }: Size, palette: Palette): string {
  const columns = Math.max(2, Math.round(width / 64));
  const rows = Math.max(2, Math.round(height / 64));
  const at = (column: number, row: number): string =>
    `${Math.round((column / columns) * width)} ${Math.round((row / rows) * height)}`;
  const jitter = 0.35;
  const corners = Array.from({ length: rows + 1 }, (_, row) =>
    Array.from({ length: columns + 1 }, (_, column) => {
      const isInner = column > 0 && column < columns && row > 0 && row < rows;
      const shift = (): number => (isInner ? between(random, -jitter, jitter) : 0);
      return at(column + shift(), row + shift());
    }),
  );
  let facets = '';
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const [a, b] = [corners[row]![column]!, corners[row]![column + 1]!];
      const [c, d] = [corners[row + 1]![column]!, corners[row + 1]![column + 1]!];
      const halves =
        random() < 0.5 ? [`${a}L${b}L${c}`, `${b}L${c}L${d}`] : [`${a}L${b}L${d}`, `${a}L${c}L${d}`];
      for (const half of halves) facets += `<path d="M${half}Z" fill="${pickGround(random, palette)}"/>`;
    }
  }
  return facets;
}

export function repeat(count: number, draw: (i: number) => string): string {
  let all = '';
  for (let i = 0; i < count; i++) all += draw(i);
  return all;
}
