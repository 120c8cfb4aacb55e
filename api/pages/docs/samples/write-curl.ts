import { quoteShell } from '../../quote-shell.ts';
import { fillPath, findTokenVariable, listHeaders, listSchemes, setsCookies, type Call } from './call.ts';

/** File in which the commands store the session's cookies between calls. */
export const cookieFile = 'cookies.txt';

/**
 * Writes a curl command for this call, for a shell that has `API_KEY` set, or `ADMIN_TOKEN` for operators, or `CSRF_TOKEN`
 * for a session.
 */
export function writeCurl(call: Call): string {
  const { serverUrl, method, path, operation, body, form, contentType } = call;
  const schemes = listSchemes(operation);
  const token = findTokenVariable(operation);
  const parts = [`curl ${quoteShell(`${serverUrl}${fillPath(path, operation)}`)}`];
  if (method !== 'get' && !(method === 'post' && (body ?? form) !== undefined))
    parts.push(`-X ${method.toUpperCase()}`);
  if (contentType === 'text/event-stream') parts.push('--no-buffer');
  if (contentType.startsWith('image/')) parts.push('--remote-name');
  if (token !== null) parts.push(`-H "Authorization: Bearer $${token}"`);
  if (schemes.includes('webSession') || schemes.includes('webRefresh')) parts.push(`-b ${cookieFile}`);
  if (setsCookies(operation)) parts.push(`-c ${cookieFile}`);
  if (schemes.includes('csrfToken')) parts.push('-H "X-CSRF-Token: $CSRF_TOKEN"');
  for (const [name, value] of listHeaders(call)) parts.push(`-H ${quoteShell(`${name}: ${value}`)}`);
  if (body !== undefined) {
    parts.push(`-H 'Content-Type: application/json'`, `-d ${quoteShell(JSON.stringify(body, null, 2))}`);
  }
  for (const [name, value] of Object.entries(form ?? {})) parts.push(`-F ${quoteShell(`${name}=${value}`)}`);
  return parts.join(' \\\n  ');
}
