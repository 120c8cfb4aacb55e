import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { PageConfig } from '../../../shared/platform/config/page-config.ts';
import { PreparedBody } from '../../http/responses/prepared-body.ts';
import { deriveAccent } from './accent-colors.ts';

/** What the pages load of an operator's brand. Their names contain hashes, as those of all assets do. */
export interface BrandFiles {
  /** A style sheet with the accent colours; null without a colour. */
  readonly stylesheet: string | null;
  readonly logo: string | null;
  readonly files: ReadonlyMap<string, PreparedBody>;
}

/** Reads the logo, once, at the start. */
export function loadBrandFiles({ isServed, logo, brandColor }: PageConfig): BrandFiles {
  const files = new Map<string, PreparedBody>();
  if (!isServed) return { stylesheet: null, logo: null, files };
  const add = (stem: string, ending: string, body: PreparedBody): string => {
    const hash = createHash('sha256').update(body.plain.bytes).digest('base64url').slice(0, 8);
    const name = `${stem}-${hash}.${ending}`;
    files.set(name, body);
    return `/assets/${name}`;
  };
  const stylesheet =
    brandColor === null
      ? null
      : add('brand', 'css', new PreparedBody(writeStyles(brandColor), 'text/css; charset=utf-8'));
  const logoPath =
    logo === null
      ? null
      : add(
          'logo',
          logo.path.split('.').at(-1)!.toLowerCase(),
          new PreparedBody(readFileSync(logo.path), logo.contentType),
        );
  return { stylesheet, logo: logoPath, files };
}

function writeStyles(color: string): string {
  const [light, dark] = (['light', 'dark'] as const).map((theme) => {
    const { accent, onAccent, tint } = deriveAccent(color, theme);
    return `--accent:${accent};--on-accent:${onAccent};--accent-tint:${tint}`;
  });
  return (
    `:root{${light}}\n` +
    `@media (prefers-color-scheme:dark){:root:not([data-theme=light]){${dark}}}\n` +
    `:root[data-theme=dark]{${dark}}\n`
  );
}
