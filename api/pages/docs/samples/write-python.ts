import { fillPath, findTokenVariable, listHeaders, usesCookies, type Call } from './call.ts';
import { findPathValue, findSdkCall, streamedValues, type SdkCall } from './sdk-calls.ts';
import { pythonNotation, writeLiteral } from '../../write-literal.ts';

const literal = (value: unknown, depth = 0): string => writeLiteral(value, pythonNotation, depth);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Writes a call as a program in Python: with OpenAI's package if it has the operation, otherwise with httpx, which that
 * package brings. Returns null for calls with cookies.
 */
export function writePython(call: Call): string | null {
  if (usesCookies(call.operation)) return null;
  const sdkCall = findSdkCall(call);
  return sdkCall === null ? writeHttpx(call) : writeSdk(call, sdkCall);
}

function writeSdk(call: Call, { method, takes, shown }: SdkCall): string {
  const argument = {
    body: () => writeArguments(isObject(call.body) ? call.body : {}),
    id: () => literal(findPathValue(call)),
    file: () =>
      `file=open(${literal((call.form?.['file'] ?? '').slice(1))}, "rb"), purpose=${literal(call.form?.['purpose'])}`,
    nothing: () => '',
  }[takes]();
  const invocation = `client.${method}(${argument})`;
  const show =
    call.contentType === 'text/event-stream'
      ? `stream = ${invocation}\nfor chunk in stream:\n    ${streamedValues[method]!.python}`
      : shown === null
        ? `for item in ${invocation}:\n    print(item.id)`
        : `result = ${invocation}\nprint(result${shown.python})`;
  return [
    'import os',
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url="${call.serverUrl}/v1", api_key=os.environ["API_KEY"])`,
    '',
    show,
  ].join('\n');
}

function writeArguments(body: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(body).map(([name, value]) => `    ${name}=${literal(value, 1)},\n`);
  return `\n${lines.join('')}`;
}

function writeHttpx(call: Call): string {
  const { serverUrl, method, path, operation, body, form, contentType } = call;
  const token = findTokenVariable(operation);
  const headers = [
    ...(token === null ? [] : [`"Authorization": f"Bearer {os.environ['${token}']}"`]),
    ...listHeaders(call).map(([name, value]) => `${literal(name)}: ${literal(value)}`),
  ];
  const parts = Object.entries(form ?? {});
  const files = parts.filter(([, value]) => value.startsWith('@'));
  const fields = parts.filter(([, value]) => !value.startsWith('@'));
  const isStream = contentType === 'text/event-stream';
  const options = [
    literal(`${serverUrl}${fillPath(path, operation)}`),
    ...(headers.length === 0 ? [] : [`headers={${headers.join(', ')}}`]),
    ...(body === undefined ? [] : [`json=${literal(body, 1)}`]),
    ...(fields.length === 0 ? [] : [`data=${literal(Object.fromEntries(fields), 1)}`]),
    ...(files.length === 0
      ? []
      : [
          `files={${files.map(([name, value]) => `${literal(name)}: open(${literal(value.slice(1))}, "rb")`).join(', ')}}`,
        ]),
    // A response of a model may take longer than the five seconds that httpx waits.
    ...(token === 'API_KEY' ? ['timeout=None'] : []),
  ];
  const imports = [...(token === null ? [] : ['import os']), 'import httpx', ''];
  const lines = options.map((line) => `    ${line},\n`).join('');
  const verb = `"${method.toUpperCase()}"`;
  if (isStream)
    return [
      ...imports,
      `with httpx.stream(\n    ${verb},\n${lines}) as response:`,
      '    for line in response.iter_lines():\n        print(line)',
    ].join('\n');
  const hasOwnFunction = !(method === 'delete' && body !== undefined);
  const calling = hasOwnFunction ? `httpx.${method}(\n${lines})` : `httpx.request(\n    ${verb},\n${lines})`;
  return [...imports, `response = ${calling}`, writeReading(contentType)].join('\n');
}

function writeReading(contentType: string): string {
  if (contentType === '') return 'print(response.status_code)';
  if (contentType.endsWith('json')) return 'print(response.json())';
  if (contentType.startsWith('text/')) return 'print(response.text)';
  return 'open("result", "wb").write(response.content)';
}
