import { stripTrailing } from '../../shared/platform/runtime/strip-trailing.ts';

/** Decodes base64. Returns null if the text is not base64. */
export function readBase64(text: string): Buffer | null {
  return text !== '' && /^[A-Za-z0-9+/_-]*={0,2}$/.test(text) && stripTrailing(text, '=').length % 4 !== 1
    ? Buffer.from(text, 'base64')
    : null;
}
