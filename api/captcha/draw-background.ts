import { between, oneOf, type Random } from './captcha-random.ts';

export const formatColour = (hue: number, saturation: number, lightness: number): string =>
  `hsl(${Math.round(hue + 360) % 360},${Math.round(saturation)}%,${Math.round(lightness)}%)`;

export const randomHue = (random: Random): number => Math.floor(random() * 360);

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Patches of medium lightness, so that no threshold of lightness or colour separates all icons from the background. */
export function drawBackground(random: Random, { width, height }: Size): string {
  const hue = randomHue(random);
  let patches = '';
  for (let i = 0; i < 14; i++) {
    const fill = formatColour(
      hue + between(random, -70, 70),
      between(random, 25, 60),
      between(random, 38, 68),
    );
    const rotation = Math.round(between(random, -20, 20));
    patches += `<ellipse cx="${Math.round(random() * width)}" cy="${Math.round(random() * height)}" rx="${Math.round(between(random, 30, 110))}" ry="${Math.round(between(random, 20, 80))}" transform="rotate(${rotation})" fill="${fill}" opacity=".7"/>`;
  }
  return `<rect width="100%" height="100%" fill="${formatColour(hue, 35, 55)}"/>${patches}`;
}

/** Scribbles with the line widths and contrasts of icons, so that the edges of icons are not the strongest ones. */
export function drawScribbles(random: Random, { width, height }: Size, count: number): string {
  let shapes = '';
  for (let i = 0; i < count; i++) {
    const x = random() * width;
    const y = random() * height;
    const reach = between(random, 12, 40);
    const at = (): string =>
      `${Math.round(x + between(random, -reach, reach))} ${Math.round(y + between(random, -reach, reach))}`;
    const isLight = random() < 0.5;
    const tint = formatColour(
      randomHue(random),
      between(random, 30, 80),
      isLight ? between(random, 76, 97) : between(random, 8, 30),
    );
    const thickness = between(random, 2, 5).toFixed(1);
    shapes += `<path d="M${at()}Q${at()} ${at()}T${at()}" fill="none" stroke="${tint}" stroke-width="${thickness}" stroke-linecap="round" opacity="${between(random, 0.5, 0.85).toFixed(2)}"/>`;
  }
  return shapes;
}

/** Fine lines over everything. They split icons into pieces for programs, but do not hide anything from people. */
export function drawScratches(random: Random, { width, height }: Size, count: number): string {
  let lines = '';
  for (let i = 0; i < count; i++) {
    const tint = formatColour(randomHue(random), 60, oneOf(random, [12, 92]));
    const y = (): number => Math.round(random() * height);
    lines += `<path d="M-5 ${y()}C${Math.round(width * 0.3)} ${y()} ${Math.round(width * 0.7)} ${y()} ${width + 5} ${y()}" fill="none" stroke="${tint}" stroke-width="${between(random, 1, 2).toFixed(1)}" opacity=".6"/>`;
  }
  return lines;
}
