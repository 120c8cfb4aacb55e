/** A target that needs no normalization: starts with a slash and has no escapes and no fragment. */
const plain = /^\/[!"$&-~]*$/;
const absoluteForm = /^https?:\/\/[^/?#]*/i;
const fragment = /#.*/s;
/** Node decodes a target as Latin-1: one character per byte. */
const nonUrlByte = /[^\x21-\x7e]/g;
const escapeByte = (byte: string): string =>
  `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
const escape = /%[0-9a-f]{2}/gi;
const unreserved = /^[a-z0-9\-._~]$/i;

/**
 * Returns the path and query of any form of target, in ASCII. Decodes escapes of unreserved characters (RFC 3986,
 * 6.2.2.2). For targets that are not in the plain form, Koa uses the legacy URL parser, which throws on some of them.
 */
export function normalizeTarget(target: string): string {
  if (plain.test(target)) return target;
  const local = target.replace(absoluteForm, '').replace(fragment, '').replaceAll(nonUrlByte, escapeByte);
  const rooted = local.startsWith('/') ? local : `/${local}`;
  if (!rooted.includes('%')) return rooted;
  const query = rooted.indexOf('?');
  const path = query < 0 ? rooted : rooted.slice(0, query);
  const normal = path.replaceAll(escape, (text) => {
    const character = String.fromCharCode(Number.parseInt(text.slice(1), 16));
    return unreserved.test(character) ? character : text;
  });
  return query < 0 ? normal : normal + rooted.slice(query);
}
