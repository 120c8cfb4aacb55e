import { pickOne, shuffle, type Random } from './seeded-random.ts';

/** `ink` is dark enough and `paper` light enough for text in one of them to be readable on the other. */
export interface PosterPalette {
  readonly ink: string;
  readonly paper: string;
  readonly accents: readonly [string, string, string, string];
}

const VIVID = [
  { ink: '#1b1f3b', paper: '#fff6e9', accents: ['#ff6b35', '#f7b267', '#2ec4b6', '#e71d36'] },
  { ink: '#14213d', paper: '#fdfaf3', accents: ['#fca311', '#e5383b', '#4ea8de', '#80d39b'] },
  { ink: '#2b0a3d', paper: '#fff4fb', accents: ['#f72585', '#7b2cbf', '#4cc9f0', '#ffbe0b'] },
  { ink: '#073b3a', paper: '#f6fff8', accents: ['#06d6a0', '#ffd166', '#ef476f', '#118ab2'] },
  { ink: '#2d1e2f', paper: '#fff8f0', accents: ['#f75c03', '#f1c40f', '#d90368', '#04a777'] },
] as const satisfies PosterPalette[];

const NATURAL = [
  { ink: '#2f3e2c', paper: '#f7f4ea', accents: ['#a3b18a', '#588157', '#dda15e', '#bc6c25'] },
  { ink: '#33312e', paper: '#f5efe6', accents: ['#cb997e', '#ddbea9', '#a5a58d', '#6b705c'] },
  { ink: '#22333b', paper: '#f2f4f3', accents: ['#a9927d', '#c6ac8f', '#7a9e9f', '#4f6d7a'] },
] as const satisfies PosterPalette[];

/** `vivid` and `natural`, OpenAI's two image styles, determine the kind of palette. */
export function choosePalette(random: Random, style: string | null): PosterPalette {
  const kind = style?.trim().toLowerCase();
  const palette = pickOne<PosterPalette>(
    random,
    kind === 'vivid' ? VIVID : kind === 'natural' ? NATURAL : [...VIVID, ...NATURAL],
  );
  return { ...palette, accents: shuffle(random, palette.accents) as unknown as PosterPalette['accents'] };
}

/** Mixes two colours; `share` is the fraction of the second. */
export function mixColors(from: string, to: string, share: number): string {
  const channels = [1, 3, 5].map((at) => {
    const start = Number.parseInt(from.slice(at, at + 2), 16);
    const end = Number.parseInt(to.slice(at, at + 2), 16);
    return Math.round(start + (end - start) * share)
      .toString(16)
      .padStart(2, '0');
  });
  return `#${channels.join('')}`;
}
