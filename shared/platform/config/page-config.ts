import { readFileSync, statSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import { explainFileError } from '../runtime/explain-file-error.ts';

/** What operators set for the pages of the gateway. */
export interface PageConfig {
  /** Whether pages are served. */
  readonly isServed: boolean;
  /** The name of the service. Null means that of the mails' sender. */
  readonly brandName: string | null;
  /** An image file; null if there is none. */
  readonly logo: BrandLogo | null;
  /** The accent colour as `#rrggbb`, in lower case. Null means the product's own. */
  readonly brandColor: string | null;
  readonly termsUrl: string | null;
  readonly privacyUrl: string | null;
  readonly footerText: string | null;
}

export interface BrandLogo {
  readonly path: string;
  readonly contentType: string;
}

interface PageVariables {
  readonly PAGES: 'on' | 'off';
  readonly BRAND_NAME?: string;
  readonly BRAND_LOGO?: string;
  readonly BRAND_COLOR?: string;
  readonly TERMS_URL?: string;
  readonly PRIVACY_URL?: string;
  readonly FOOTER_TEXT?: string;
}

const logoTypes: Readonly<Record<string, string>> = {
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webp': 'image/webp',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
};

/** Each page loads the logo. */
const maxLogoBytes = 256 * 1024;

export function readPageConfig(values: PageVariables): PageConfig {
  const logoPath = values.BRAND_LOGO === undefined ? null : resolve(values.BRAND_LOGO);
  return Object.freeze({
    isServed: values.PAGES === 'on',
    brandName: values.BRAND_NAME?.trim() ?? null,
    logo: logoPath === null ? null : { path: logoPath, contentType: contentTypeOf(logoPath)! },
    brandColor: values.BRAND_COLOR === undefined ? null : expandColor(values.BRAND_COLOR),
    termsUrl: values.TERMS_URL ?? null,
    privacyUrl: values.PRIVACY_URL ?? null,
    footerText: values.FOOTER_TEXT?.trim() ?? null,
  });
}

const contentTypeOf = (path: string): string | undefined => logoTypes[extname(path).toLowerCase()];

/** Returns what is wrong with the logo's file, or null. Reads its beginning, so that it cannot be a surprise later. */
export function findLogoProblem(value: string): string | null {
  const path = resolve(value);
  if (contentTypeOf(path) === undefined)
    return `must be the path of an image file: ${Object.keys(logoTypes).join(', ')}`;
  try {
    const { size } = statSync(path);
    if (size > maxLogoBytes)
      return `is a file of ${size} bytes, and may have at most ${maxLogoBytes}: every page loads it`;
    readFileSync(path);
    return null;
  } catch (error) {
    return `names a file that cannot be read: ${explainFileError(error, path)}`;
  }
}

const colorPattern = /^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i;

export const isColor = (value: string): boolean => colorPattern.test(value);

/** Returns `#rrggbb` for `#rgb` as well. */
function expandColor(value: string): string {
  const digits = value.slice(1).toLowerCase();
  return `#${digits.length === 3 ? digits.replaceAll(/./g, '$&$&') : digits}`;
}
