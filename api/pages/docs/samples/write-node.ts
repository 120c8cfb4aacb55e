import { fillPath, findTokenVariable, listHeaders, usesCookies, type Call } from './call.ts';
import { findPathValue, findSdkCall, streamedValues, type SdkCall } from './sdk-calls.ts';
import { jsNotation, writeLiteral } from '../../write-literal.ts';

const literal = (value: unknown, depth = 0): string => writeLiteral(value, jsNotation, depth);

/**
 * Writes a call as a module for Node: with OpenAI's package if it has the operation, otherwise with `fetch`. Returns
 * null for calls with cookies.
 */
export function writeNode(call: Call): string | null {
  if (usesCookies(call.operation)) return null;
  const sdkCall = findSdkCall(call);
  return sdkCall === null ? writeFetch(call) : writeSdk(call, sdkCall);
}

function writeSdk(call: Call, { method, takes, shown }: SdkCall): string {
  const argument = {
    body: () => literal(call.body),
    id: () => literal(findPathValue(call)),
    file: () =>
      `{ file: createReadStream('${(call.form?.['file'] ?? '').slice(1)}'), purpose: '${call.form?.['purpose'] ?? ''}' }`,
    nothing: () => '',
  }[takes]();
  const invocation = `client.${method}(${argument})`;
  const show =
    call.contentType === 'text/event-stream'
      ? `const stream = await ${invocation};\nfor await (const chunk of stream) ${streamedValues[method]!.js}`
      : shown === null
        ? `for await (const item of ${invocation}) console.log(item.id);`
        : `const result = await ${invocation};\nconsole.log(result${shown.js});`;
  return [
    ...(takes === 'file' ? [`import { createReadStream } from 'node:fs';`] : []),
    `import OpenAI from 'openai';`,
    '',
    `const client = new OpenAI({ baseURL: '${call.serverUrl}/v1', apiKey: process.env.API_KEY });`,
    '',
    show,
  ].join('\n');
}

function writeFetch(call: Call): string {
  const { serverUrl, method, path, operation, body, form } = call;
  const token = findTokenVariable(operation);
  const headers = [
    ...(token === null ? [] : [`Authorization: \`Bearer \${process.env.${token}}\``]),
    ...(body === undefined ? [] : [`'Content-Type': 'application/json'`]),
    ...listHeaders(call).map(([name, value]) => `${jsNotation.writeKey(name)}: ${literal(value)}`),
  ];
  const options = [
    ...(method === 'get' ? [] : [`method: '${method.toUpperCase()}'`]),
    ...(headers.length === 0 ? [] : [`headers: { ${headers.join(', ')} }`]),
    ...(body === undefined ? [] : [`body: JSON.stringify(${literal(body, 1)})`]),
    ...(form === undefined ? [] : ['body: form']),
  ];
  const url = literal(`${serverUrl}${fillPath(path, operation)}`);
  const rest = options.length === 0 ? '' : `, {\n${options.map((line) => `  ${line},\n`).join('')}}`;
  const fetching = `const response = await fetch(${url}${rest});`;
  return [...writeForm(form), ...writeReading(call, fetching)].join('\n');
}

function writeForm(form: Call['form']): string[] {
  const parts = Object.entries(form ?? {});
  if (parts.length === 0) return [];
  const append = ([name, value]: [string, string]): string =>
    value.startsWith('@')
      ? `form.append('${name}', await openAsBlob(${literal(value.slice(1))}), ${literal(value.slice(1))});`
      : `form.append('${name}', ${literal(value)});`;
  return [
    `import { openAsBlob } from 'node:fs';`,
    '',
    'const form = new FormData();',
    ...parts.map(append),
    '',
  ];
}

function writeReading({ contentType }: Call, fetching: string): string[] {
  if (contentType === '') return [fetching, 'console.log(response.status);'];
  if (contentType === 'text/event-stream')
    return [
      fetching,
      'for await (const text of response.body.pipeThrough(new TextDecoderStream()))',
      '  process.stdout.write(text);',
    ];
  if (contentType.startsWith('text/')) return [fetching, 'console.log(await response.text());'];
  if (contentType.endsWith('json')) return [fetching, 'console.log(await response.json());'];
  return [
    `import { writeFile } from 'node:fs/promises';`,
    '',
    fetching,
    `await writeFile('result', response.body);`,
  ];
}
