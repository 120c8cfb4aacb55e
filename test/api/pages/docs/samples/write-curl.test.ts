import { execFileSync } from 'node:child_process';
import test from 'ava';
import { writeCurl } from '../../../../../api/pages/docs/samples/write-curl.ts';
import type { Call } from '../../../../../api/pages/docs/samples/call.ts';
import type { OperationObject } from '../../../../../api/description/description.ts';

const operation: OperationObject = {
  operationId: 'doIt',
  tags: ['System'],
  summary: 'Do it',
  security: [],
  responses: {},
};
const call: Call = {
  serverUrl: 'http://gateway.test',
  method: 'get',
  path: '/v1/things',
  operation,
  body: undefined,
  contentType: 'application/json',
};

/** The arguments that curl receives when a shell runs the command. */
function readArguments(command: string): string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\n${command}`;
  return execFileSync('sh', ['-c', script], {
    encoding: 'utf8',
    env: { API_KEY: 'mg-key', ADMIN_TOKEN: 'mga-token', CSRF_TOKEN: 'csrf' },
  })
    .split('\0')
    .slice(0, -1);
}

test('a body with any characters reaches curl unchanged', (t) => {
  const body = { text: `it's "$HOME" \`date\` \\ and\nmore`, n: 1 };
  const [url, ...options] = readArguments(writeCurl({ ...call, method: 'post', body }));
  t.is(url, 'http://gateway.test/v1/things');
  t.deepEqual(JSON.parse(options.at(-1)!), body);
  t.false(options.includes('-X'));
});

test('the key is read from a shell variable', (t) => {
  const keyed = { ...operation, security: [{ apiKey: [] }] };
  t.deepEqual(readArguments(writeCurl({ ...call, operation: keyed })).slice(1), [
    '-H',
    'Authorization: Bearer mg-key',
  ]);
});

test('a call of the admin API sends the token and the headers that it must have, and no session', (t) => {
  const security = [{ adminToken: [] }, { adminSession: [], csrfToken: [] }];
  const key = {
    name: 'Idempotency-Key',
    in: 'header',
    required: true,
    schema: {},
    example: 'invoice 1',
  } as const;
  const keyed = { ...operation, security, parameters: [key] };
  t.deepEqual(readArguments(writeCurl({ ...call, operation: keyed })).slice(1), [
    '-H',
    'Authorization: Bearer mga-token',
    '-H',
    'Idempotency-Key: invoice 1',
  ]);
});

test('a session is passed between commands in a cookie file, and its CSRF token in a shell variable', (t) => {
  const responses = { 200: { description: '', headers: { 'set-cookie': { $ref: '' } }, content: {} } };
  const argumentsOf = (change: Partial<OperationObject>) =>
    readArguments(writeCurl({ ...call, operation: { ...operation, ...change } })).slice(1);
  t.deepEqual(argumentsOf({ responses }), ['-c', 'cookies.txt']);
  t.deepEqual(argumentsOf({ security: [{ webSession: [] }] }), ['-b', 'cookies.txt']);
  const csrf = ['-H', 'X-CSRF-Token: csrf'];
  t.deepEqual(argumentsOf({ security: [{ webSession: [], csrfToken: [] }] }), ['-b', 'cookies.txt', ...csrf]);
  const both = ['-b', 'cookies.txt', '-c', 'cookies.txt'];
  t.deepEqual(argumentsOf({ security: [{ webRefresh: [] }], responses }), both);
});

test('parameters are filled in with their examples, URL-encoded', (t) => {
  const parameters = [
    { name: 'id', in: 'path' as const, required: true, schema: {}, example: 'a/b c' },
    { name: 'from', in: 'query' as const, required: false, schema: {}, example: "it's" },
    { name: 'to', in: 'query' as const, required: false, schema: {}, example: 2 },
  ];
  const command = writeCurl({ ...call, path: '/v1/things/{id}', operation: { ...operation, parameters } });
  t.deepEqual(readArguments(command), ["http://gateway.test/v1/things/a%2Fb%20c?from=it's&to=2"]);
});

test('a method is set explicitly if curl would not choose it by itself', (t) => {
  t.deepEqual(readArguments(writeCurl({ ...call, method: 'put', body: {} })).slice(1, 3), ['-X', 'PUT']);
  t.deepEqual(readArguments(writeCurl({ ...call, method: 'post' })).slice(1), ['-X', 'POST']);
  t.deepEqual(readArguments(writeCurl(call)).slice(1), []);
});
