/** An API key or a token of the admin API, also one that was cut or mistyped. */
const keys = /(?<![A-Za-z0-9_-])(mga?-)[A-Za-z0-9_-]{12,}/g;
/** A whole path segment in the form of a refill code. */
const codes = /(?<=\/)[0-9A-Z]{4}(?:-[0-9A-Z]{4}){4}(?![^/])/gi;

/** Hides keys, tokens and codes in a text that is logged or returned, such as a path into which one was pasted. */
export const maskSecrets = (text: string): string => text.replaceAll(codes, '…').replaceAll(keys, '$1…');
