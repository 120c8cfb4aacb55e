import type { OperationObject } from '../../description/description.ts';

export interface Call {
  readonly serverUrl: string;
  readonly method: string;
  readonly path: string;
  readonly operation: OperationObject;
  /** Undefined if the operation takes no body. */
  readonly body: unknown;
  /** The parts of a form, by name; `@` and a file name for a file. */
  readonly form?: Readonly<Record<string, string>> | undefined;
  /** Media type of the response. */
  readonly contentType: string;
  /** Whether to request a job. */
  readonly respondsAsync?: boolean;
}

/** File in which the commands store the session's cookies between calls. */
export const cookieFile = 'cookies.txt';

/**
 * Writes a curl command for this call, for a shell that has `API_KEY` set, or `ADMIN_TOKEN` for operators, or `CSRF_TOKEN`
 * for a session.
 */
export function writeCurl(call: Call): string {
  const { serverUrl, method, path, operation, body, form, contentType, respondsAsync = false } = call;
  const alternatives = operation.security.map((requirement) => Object.keys(requirement));
  const isOfAdmin = alternatives.some((names) => names.includes('adminToken'));
  const isOfKey = alternatives.some((names) => names.includes('apiKey'));
  const schemes = isOfAdmin || isOfKey ? (alternatives[0] ?? []) : alternatives.flat();
  const parts = [`curl ${quote(`${serverUrl}${fillPath(path, operation)}`)}`];
  if (method !== 'get' && !(method === 'post' && (body ?? form) !== undefined))
    parts.push(`-X ${method.toUpperCase()}`);
  if (contentType === 'text/event-stream') parts.push('--no-buffer');
  if (contentType.startsWith('image/')) parts.push('--remote-name');
  if (schemes.includes('apiKey')) parts.push('-H "Authorization: Bearer $API_KEY"');
  if (isOfAdmin) parts.push('-H "Authorization: Bearer $ADMIN_TOKEN"');
  if (schemes.includes('webSession') || schemes.includes('webRefresh')) parts.push(`-b ${cookieFile}`);
  if (setsCookies(operation)) parts.push(`-c ${cookieFile}`);
  if (schemes.includes('csrfToken')) parts.push('-H "X-CSRF-Token: $CSRF_TOKEN"');
  if (respondsAsync) parts.push(`-H 'Prefer: respond-async'`);
  for (const { name, in: location, required, example } of operation.parameters ?? [])
    if (location === 'header' && required) parts.push(`-H ${quote(`${name}: ${String(example)}`)}`);
  if (body !== undefined) {
    parts.push(`-H 'Content-Type: application/json'`, `-d ${quote(JSON.stringify(body, null, 2))}`);
  }
  for (const [name, value] of Object.entries(form ?? {})) parts.push(`-F ${quote(`${name}=${value}`)}`);
  return parts.join(' \\\n  ');
}

const setsCookies = ({ responses }: OperationObject): boolean =>
  Object.values(responses).some(({ headers }) => 'set-cookie' in headers);

/** Fills the path with its example values. Parameters without an example stay in braces. */
function fillPath(path: string, { parameters = [] }: OperationObject): string {
  const query: string[] = [];
  let filled = path;
  for (const { name, in: location, example } of parameters) {
    if (location === 'header' || example === undefined) continue;
    const value = encodeURIComponent(String(example));
    if (location === 'path') filled = filled.replace(`{${name}}`, value);
    else query.push(`${name}=${value}`);
  }
  return query.length === 0 ? filled : `${filled}?${query.join('&')}`;
}

/** Quotes any text as one shell word. */
function quote(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
