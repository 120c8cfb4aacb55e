import { createConfig, lintFromString } from '@redocly/openapi-core';
import test from 'ava';
import { createRouter, serveOperations } from '../../api/app.ts';
import type { Services } from '../../api/services.ts';
import { isErrorCode } from '../../shared/contract/errors.ts';
import type { Description } from '../../api/description/description.ts';
import {
  listOperations,
  prepareCall,
  schemesOf,
  send,
  type Call,
  type DescribedOperation,
} from '../support/described-calls.ts';
import { DescriptionChecker } from '../support/description-checker.ts';
import { exhaustNetworkLimits, provoke } from '../support/provoke-errors.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { createWebUser, webStoresOf } from '../support/web-client.ts';

let stack: TestStack;
let text: string;
let document: Description;
let checker: DescriptionChecker;

test.before(async () => {
  stack = await startStack({
    env: {
      WEB_CAPTCHA: 'off',
      TRUST_PROXY: 'on',
      METRICS_TOKEN: 'token of a test',
      ADMIN_TOKEN: 'admin-token-of-a-test-0123456789abcdef',
    },
  });
  text = await (await fetch(`${stack.url}/v1/openapi.json`)).text();
  document = JSON.parse(text) as Description;
  checker = new DescriptionChecker(document);
});
test.after.always(() => stack?.close());

const json = 'application/json';

// Serial, because it blocks the event loop, on which the stack runs too.
test.serial('an OpenAPI linter finds no problems in the OpenAPI document', async (t) => {
  const config = await createConfig({
    extends: ['recommended'],
    rules: {
      // Health, the OpenAPI document and the documentation page take no input, so they have no 4xx responses.
      'operation-4xx-response': 'off',
      // An error's schema has a part that only restricts the code and does not list the other fields of the examples.
      'no-invalid-media-type-examples': { severity: 'error', allowAdditionalProperties: true },
    },
  });
  const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config });
  t.deepEqual(
    problems.map(({ ruleId, message, location }) => `${ruleId} at ${location[0]?.pointer}: ${message}`),
    [],
  );
});

test('the router serves exactly the operations in the OpenAPI document', (t) => {
  // The router uses the services only when it is called, so they may be missing here.
  const routes = createRouter(serveOperations({ web: {}, calls: {}, config: {} } as Services)).stack.flatMap(
    ({ path, methods }) =>
      methods
        .filter((method) => method !== 'HEAD')
        .map((method) => `${method} ${String(path).replaceAll(/[:*](\w+)/g, '{$1}')}`),
  );
  t.deepEqual(
    routes.toSorted(),
    listOperations(document)
      .map(({ method, path }) => `${method.toUpperCase()} ${path}`)
      .toSorted(),
  );
});

test('the server URL in the OpenAPI document is the URL of this server', (t) => {
  t.deepEqual(document.servers, [{ url: stack.url }]);
});

/** The examples of these operations refer to objects that a fresh server does not have. */
const missingOnFreshServer: ReadonlySet<string> = new Set([
  'getFile',
  'retrieveFile',
  'downloadFile',
  'deleteFile',
  'estimateFileCost',
  'getBatch',
  'cancelBatch',
  'retryBatch',
  'streamBatchEvents',
  'redeemCode',
  'getJob',
  'cancelJob',
  'cancelJobByPost',
  'deleteJobResponse',
  'streamJobEvents',
  'streamJobOutput',
  'getAdminSession',
  'getAccount',
  'listAccountRefills',
  'verifyAccountLedger',
  'discardDeadEntry',
  'getAuditEvent',
  'listAccountAddresses',
  'updateAccount',
  'creditAccount',
  'banAccount',
  'unbanAccount',
  'rotateAccountKey',
  'getWebhookSecret',
  'rotateWebhookSecret',
  'unlinkAccount',
  'revokeRefillCode',
  'revokeCodesOfBatch',
  'listAdminJobs',
  'getAdminJob',
  'cancelAdminJob',
  'getAdminBatch',
  'cancelAdminBatch',
  'retryAdminBatch',
  'getAdminRequest',
  'getAuditEvent',
  'getUser',
  'banUser',
  'unbanUser',
  'revokeUserSessions',
]);

// Serial, because an example drains a queue.
test.serial(
  'every operation responds to its examples as documented, with only the credentials that it declares',
  async (t) => {
    for (const described of listOperations(document)) {
      const { operationId, requestBody } = described.operation;
      const bodies = Object.values(requestBody?.content[json]?.examples ?? { none: { value: undefined } });
      for (const { value } of bodies) {
        const body = value === undefined ? {} : { body: JSON.stringify(value) };
        // Operations may change the account or user that calls them, so each call has its own.
        const response = await send(stack.url, described, {
          ...body,
          ...(await prepareCall(stack, described)),
        });
        t.is(response.ok, !missingOnFreshServer.has(operationId), `${operationId}: ${response.status}`);
        t.deepEqual(await checker.findFaults(described.path, described.method, response), [], operationId);
      }
    }
  },
);

const bearer = (apiKey: string) => ({ authorization: `Bearer ${apiKey}` });

interface WrongCall extends Call {
  readonly title: string;
}

/** A valid API key and a valid session. */
interface ValidCredentials {
  readonly key: Record<string, string>;
  readonly session: Record<string, string>;
}

/** Calls that an operation must reject. */
function listWrongCalls(
  described: DescribedOperation,
  base: Call,
  validCredentials: ValidCredentials,
): WrongCall[] {
  const { parameters = [], requestBody } = described.operation;
  const names = parameters.filter((one) => one.in === 'path').map((one) => one.name);
  const checked = parameters.filter(
    ({ in: location, schema }) =>
      location === 'query' && (schema.enum ?? schema.format ?? schema.minimum) !== undefined,
  );
  const withBody: Call[] = [
    { ...base, body: '{"broken' },
    { ...base, body: '[]' },
    { ...base, body: '{}', contentType: 'text/plain' },
    { ...base, body: '{}', contentType: 'application/json; charset=latin1' },
  ];
  const unknownSecret = 'x'.repeat(86);
  const unauthorized: WrongCall[] = [
    { title: 'no credentials', headers: {} },
    {
      title: 'wrong credentials',
      headers: {
        authorization: `Bearer mg-${unknownSecret.slice(0, 43)}`,
        cookie: `mg_session=${unknownSecret}`,
      },
    },
  ];
  const wrongKind = schemesOf(described).includes('apiKey') ? validCredentials.session : validCredentials.key;
  unauthorized.push({ title: 'credentials of the other kind', headers: wrongKind });
  return [
    ...(schemesOf(described).length === 0 ? [] : unauthorized.map((call) => ({ ...base, ...call }))),
    ...(requestBody === undefined ? [] : withBody.map((call) => ({ ...call, title: String(call.body) }))),
    ...names.map((name) => ({ ...base, title: `no such ${name}`, path: { ...base.path, [name]: 'none' } })),
    // It looks like an API key, which no query may contain, and is no value of any other format.
    ...checked.map(({ name }) => ({ ...base, title: `a wrong ${name}`, query: `${name}=mg-no-such-value` })),
  ];
}

test('every operation rejects wrong calls as documented, including a session instead of a key and a key instead of a session', async (t) => {
  const { client } = await createWebUser(stack, 'stranger@example.com');
  const { apiKey } = await stack.createAccount();
  const session = { cookie: client.cookieHeader, 'x-csrf-token': client.csrfToken! };
  const validCredentials = { key: bearer(apiKey), session };
  for (const described of listOperations(document)) {
    for (const call of listWrongCalls(described, await prepareCall(stack, described), validCredentials)) {
      const response = await send(stack.url, described, call);
      const title = `${described.operation.operationId} with ${call.title}`;
      t.true(response.status >= 400 && response.status < 500, `${title}: ${response.status}`);
      t.deepEqual(await checker.findFaults(described.path, described.method, response), [], title);
    }
  }
});

/** Errors that only a failing store, a captcha, a slow sender, or 129 concurrent calls can cause. */
const cannotBeProvoked = [
  'internal_error',
  'service_unavailable',
  'queue_full',
  'key_generation_failed',
  'captcha_failed',
  'rate_limit_exceeded',
  'deadline_exceeded',
];

const codesOf = ({ operation }: DescribedOperation): string[] =>
  Object.values(operation.responses)
    .flatMap(({ content }) => Object.keys(content[json]?.examples ?? {}))
    .filter((code) => isErrorCode(code) && !cannotBeProvoked.includes(code));

test('each documented error of an account area operation can be provoked, and its response is as documented', async (t) => {
  const limitedAddress = await exhaustNetworkLimits(stack);
  for (const described of listOperations(document)) {
    if (!described.operation.tags.some((tag) => tag.startsWith('Web '))) continue;
    const call = await prepareCall(stack, described);
    for (const code of codesOf(described)) {
      const title = `${described.operation.operationId}: ${code}`;
      const example = described.operation.requestBody?.content[json]?.examples?.['usual']?.value;
      const response = await send(stack.url, described, {
        ...(example === undefined ? {} : { body: JSON.stringify(example) }),
        ...(await provoke(stack, described, { code, limitedAddress, call })),
      });
      t.is(((await response.clone().json()) as { error: { code: string } }).error.code, code, title);
      t.deepEqual(await checker.findFaults(described.path, described.method, response), [], title);
    }
  }
});

test('every operation of a key also takes a session with X-Api-Account, except those that have a twin in the account area', async (t) => {
  const { client, user } = await createWebUser(stack, 'owner@example.com');
  const { id: accountId, apiKey } = await stack.createAccount();
  const { _id: linkId } = await webStoresOf(stack).links.create({ userId: user._id, accountId, label: 'A' });
  const session = { cookie: client.cookieHeader, 'x-csrf-token': client.csrfToken! };
  const onlyWithKey: string[] = [];
  for (const described of listOperations(document)) {
    const { operationId, security, requestBody } = described.operation;
    if (!schemesOf(described).includes('apiKey')) continue;
    if (security.length === 1) {
      onlyWithKey.push(operationId);
      continue;
    }
    const schemes = ['webSession', 'apiAccount', ...(described.method === 'get' ? [] : ['csrfToken'])];
    t.deepEqual(security.map(Object.keys), [['apiKey'], schemes], operationId);
    const example = requestBody?.content[json]?.examples?.['usual']?.value;
    const body = example === undefined ? {} : { body: JSON.stringify(example) };
    const headers = { ...session, 'x-api-account': String(linkId) };
    const bySession = await send(stack.url, described, { ...body, headers });
    const byKey = await send(stack.url, described, { ...body, headers: bearer(apiKey) });
    t.is(bySession.status, byKey.status, operationId);
    t.false([401, 403].includes(bySession.status), operationId);
    t.deepEqual(await checker.findFaults(described.path, described.method, bySession), [], operationId);
    await byKey.text();
  }
  t.deepEqual(onlyWithKey, ['redeemCode', 'regenerateApiKey']);
});

test('rate limit and balance errors are as documented', async (t) => {
  const withoutMoney = await stack.createAccount({ balance: '0' });
  const rateLimited = await stack.createAccount({ rpm: 1 });
  const described = listOperations(document).filter(
    ({ operation }) => operation.responses['402'] !== undefined,
  );
  t.true(described.length >= 3);
  for (const one of described) {
    const body = JSON.stringify(one.operation.requestBody?.content[json]?.examples?.['usual']?.value);
    const rejection = await send(stack.url, one, { headers: bearer(withoutMoney.apiKey), body });
    t.is(rejection.status, 402);
    t.deepEqual(await checker.findFaults(one.path, one.method, rejection), []);
    await (await send(stack.url, one, { headers: bearer(rateLimited.apiKey), body })).text();
    const limited = await send(stack.url, one, { headers: bearer(rateLimited.apiKey), body });
    t.is(limited.status, 429);
    t.deepEqual(await checker.findFaults(one.path, one.method, limited), []);
  }
});

test('the response for an existing file is as documented', async (t) => {
  const { apiKey } = await stack.createAccount();
  const body = { model: 'demo-svg-image', prompt: 'a lighthouse', size: '256x256', response_format: 'url' };
  const generated = await stack.post('/v1/images/generations', apiKey, body);
  const { data } = (await generated.json()) as { data: { url: string }[] };
  const response = await fetch(data[0]!.url);
  t.is(response.status, 200);
  t.deepEqual(await checker.findFaults('/files/{name}', 'get', response), []);
});
