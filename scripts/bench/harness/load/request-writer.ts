import type { LoadPlan } from './load-plan.ts';

/** In each body, a number that is unique in the run replaces this mark. */
export const uniqueMark = '#unique-nr#';

/**
 * Returns a function that writes the next request. Unique numbers replace the marks in the body, padded to the length
 * of a mark, so that all requests of a plan have the same length.
 */
export function createRequestWriter(plan: LoadPlan): () => string {
  const { host, port, path, apiKeys, headers = {}, body } = plan;
  const requests = apiKeys.map((key) => {
    const head = [
      `POST ${path} HTTP/1.1`,
      `host: ${host}:${port}`,
      `authorization: Bearer ${key}`,
      'content-type: application/json',
      'accept: */*',
      'user-agent: model-gateway-bench',
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      `content-length: ${Buffer.byteLength(body)}`,
    ].join('\r\n');
    return `${head}\r\n\r\n${body}`.split(uniqueMark);
  });
  // Each process starts with a different number, so that even two runs against one gateway share no text.
  let number = (Date.now() % 999_000) * 100_000;
  let turn = 0;
  return () => {
    let text = '';
    for (const [i, piece] of requests[turn++ % requests.length]!.entries()) {
      if (i > 0) text += String((number += 1)).padStart(uniqueMark.length, '0');
      text += piece;
    }
    return text;
  };
}
