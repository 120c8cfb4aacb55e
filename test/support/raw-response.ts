/** One response as sent over the wire. */
export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Parses consecutive HTTP/1.1 responses from a text with one character per byte. */
export function* parseResponses(text: string): Generator<RawResponse> {
  for (let rest = text; rest !== '';) {
    const headEnd = rest.indexOf('\r\n\r\n');
    if (headEnd < 0) throw new Error(`not a response head: ${rest.slice(0, 200)}`);
    const [statusLine = '', ...lines] = rest.slice(0, headEnd).split('\r\n');
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const colon = line.indexOf(':');
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const status = Number(statusLine.split(' ')[1]);
    const from = headEnd + 4;
    const [body, length] = readBody(rest.slice(from), status, headers);
    yield { status, headers, body: Buffer.from(body, 'latin1').toString('utf8') };
    rest = rest.slice(from + length);
  }
}

/** The body, and its length on the wire in bytes. */
function readBody(text: string, status: number, headers: Readonly<Record<string, string>>): [string, number] {
  if (status < 200 || status === 204) return ['', 0];
  if (headers['transfer-encoding'] !== 'chunked') {
    const length = Number(headers['content-length'] ?? text.length);
    return [text.slice(0, length), length];
  }
  let body = '';
  let at = 0;
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return [body, text.length];
    const length = Number.parseInt(text.slice(at, lineEnd), 16);
    body += text.slice(lineEnd + 2, lineEnd + 2 + length);
    at = lineEnd + 2 + length + 2;
    if (length === 0) return [body, at];
  }
}
