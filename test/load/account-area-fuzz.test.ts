import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { isWebOperation, type Operation } from '../../shared/contract/operation.ts';
import { operations } from '../../api/contract/operations.ts';
import type { BoundedField } from '../support/bounded-values.ts';
import type { TestStack } from '../support/stack.ts';
import { startWebStack } from '../support/web-accounts.ts';
import {
  createCaller,
  createParts,
  send,
  type Answer,
  type Caller,
  type Parts,
  type SendOptions,
} from '../api/account-area/call-with-parts.ts';
import { bounds, type Bounds, type FieldName } from '../api/account-area/spec-bounds.ts';

/** Every request to the account area succeeds or fails as specified, and never causes a server error. */

let stack: TestStack;

test.before(async () => {
  const env = { WEB_CAPTCHA: 'off', TRUST_PROXY: 'on', SIGNUP: 'on' };
  stack = await startWebStack({ workers: [], env });
});
test.after.always(() => stack?.close());

const runs = { numRuns: 20 };

const webOperations = Object.entries(operations).filter(
  ([id, operation]) => isWebOperation(operation) || id === 'getWebConfig',
) as [keyof typeof bounds, Operation][];

const namesOf = (schema: { readonly properties?: object } | undefined): string[] =>
  Object.keys(schema?.properties ?? {});

/** Whether the type is that of an issue with a well-formed value that has no meaning or refers to nothing. */
const isSemanticIssueType = (type: string): boolean => type === 'value_error' || type.startsWith('invalid_');

const partsOf = (name: FieldName): [keyof Parts, string] => name.split('.') as [keyof Parts, string];

function replace(parts: Parts, name: FieldName, value: unknown): Parts {
  const [part, key] = partsOf(name);
  return { ...parts, [part]: { ...parts[part], [key]: value } };
}

/** A path parameter cannot be empty: that would be a different path. */
const canBeSent = (name: FieldName, value: unknown): boolean =>
  !name.startsWith('path.') || String(value) !== '';

const show = (name: FieldName, value: unknown, { status, json }: Answer): string =>
  `${name} = ${JSON.stringify(value)?.slice(0, 200)}: ${status} ${JSON.stringify(json).slice(0, 500)}`;

async function checkOutOfBounds(
  operation: Operation,
  caller: Caller,
  name: FieldName,
  value: unknown,
): Promise<void> {
  const operationBounds = bounds[operation.operationId as keyof typeof bounds];
  const response = await send(operation, caller, replace(createParts(operationBounds, caller), name, value));
  const hasFieldLocation =
    response.issues.length > 0 && response.issues.every(({ loc }) => `${loc[0]}.${loc[1]}` === name);
  if (response.status !== 422 || response.outcome !== 'validation_failed' || !hasFieldLocation)
    throw new Error(show(name, value, response));
}

async function checkWithinBounds(
  operation: Operation,
  caller: Caller,
  name: FieldName,
  value: unknown,
  { isSemantic }: BoundedField,
): Promise<void> {
  const operationBounds: Bounds = bounds[operation.operationId as keyof typeof bounds];
  const response = await send(operation, caller, replace(createParts(operationBounds, caller), name, value));
  const { outcome, issues } = response;
  const isExpected = name.startsWith('path.')
    ? outcome === 'not_found'
    : operationBounds.outcomes.includes(outcome);
  const isMeaningless =
    isSemantic && outcome === 'validation_failed' && issues.every(({ type }) => isSemanticIssueType(type));
  if (!isExpected && !isMeaningless) throw new Error(show(name, value, response));
  const echoed = (response.json as { label?: unknown } | null)?.label;
  if (name === 'body.label' && echoed !== undefined && echoed !== value)
    throw new Error(show(name, value, response));
}

test.serial('bounds are defined for every field of every operation', (t) => {
  const fieldsOf = ({ pathParameters, query, body }: Operation): string[] =>
    Object.entries({ path: pathParameters, query, body }).flatMap(([part, schema]) =>
      namesOf(schema).map((name) => `${part}.${name}`),
    );
  t.is(webOperations.length, 28);
  for (const [id, operation] of webOperations)
    t.deepEqual(Object.keys(bounds[id].fields).toSorted(), fieldsOf(operation).toSorted(), id);
});

const fuzzed = webOperations.flatMap(([id, operation]) =>
  Object.entries(bounds[id].fields as Record<FieldName, BoundedField>).map(
    ([name, field]) => [operation, name as FieldName, field] as const,
  ),
);

for (const [operation, name, field] of fuzzed) {
  test.serial(
    `${operation.operationId}: ${name} out of bounds is a 422 for that field, and within bounds it is not`,
    async (t) => {
      const caller = await createCaller(stack);
      const sendable = (values: fc.Arbitrary<unknown>) => values.filter((value) => canBeSent(name, value));
      const outside = fc.asyncProperty(sendable(field.outside), (value) =>
        checkOutOfBounds(operation, caller, name, value),
      );
      await fc.assert(outside, runs);
      const inside = fc.asyncProperty(sendable(field.inside), (value) =>
        checkWithinBounds(operation, caller, name, value, field),
      );
      await fc.assert(inside, runs);
      if (field.isRequired) await checkOutOfBounds(operation, caller, name, undefined);
      t.pass();
    },
  );
}

function checkOutcome(t: ExecutionContext, { operationId }: Operation, { outcome, json }: Answer): void {
  const operationBounds: Bounds = bounds[operationId as keyof typeof bounds];
  t.true(operationBounds.outcomes.includes(outcome), `${operationId}: ${JSON.stringify(json)}`);
}

const withBody = webOperations.filter(([, { body }]) => body !== undefined);

for (const [id, operation] of withBody) {
  test.serial(`${id}: unknown fields have no effect`, async (t) => {
    const caller = await createCaller(stack);
    const parts = createParts(bounds[id], caller);
    const more =
      '"__proto__":{"email":1},"constructor":{"prototype":{}},"$where":"1","user_id":"x","more":[{}],';
    const text = JSON.stringify(parts.body).replace('{', `{${more}`).replace(',}', '}');
    checkOutcome(t, operation, await send(operation, caller, parts, { text }));
  });

  test.serial(`${id}: a body that is not a JSON object is a 422 for the body`, async (t) => {
    const caller = await createCaller(stack);
    const parts = createParts(bounds[id], caller);
    const invalidBodies = [
      '{',
      '{"a":',
      '{"a":1}}',
      '"x"',
      '[]',
      'null',
      '1',
      'NaN',
      '{a:1}',
      '\0',
      '\ufeff',
      "{'a':1}",
    ];
    for (const text of invalidBodies) {
      const response = await send(operation, caller, parts, { text });
      t.is(response.status, 422, `${text}: ${JSON.stringify(response.json)}`);
      t.is(response.issues[0]?.loc[0], 'body');
    }
    for (const bytes of [
      [0xff, 0xfe],
      [0x7b, 0x22, 0xc3, 0x22, 0x3a, 0x31, 0x7d],
    ]) {
      const response = await send(operation, caller, parts, { text: Uint8Array.from(bytes) });
      t.is(response.issues[0]?.type, 'unicode_invalid');
    }
  });

  test.serial(`${id}: any JSON succeeds or is rejected, and never causes a server error`, async (t) => {
    const caller = await createCaller(stack);
    const parts = createParts(bounds[id], caller);
    const names = namesOf(operation.body);
    const any = fc.dictionary(fc.oneof(fc.constantFrom(...names), fc.string()), fc.jsonValue());
    const property = fc.asyncProperty(any, async (body) => {
      const response = await send(operation, caller, { ...parts, body });
      if (response.status >= 500) throw new Error(JSON.stringify(response.json));
    });
    await fc.assert(property, runs);
    t.pass();
  });

  test.serial(`${id}: an unpaired surrogate is rejected in every text field`, async (t) => {
    const caller = await createCaller(stack);
    const parts = createParts(bounds[id], caller);
    for (const [name, value] of Object.entries(parts.body)) {
      if (typeof value !== 'string') continue;
      const text = JSON.stringify({ ...parts.body, [name]: `${value}\ud83d` });
      const { status, issues } = await send(operation, caller, parts, { text });
      t.is(status, 422);
      t.deepEqual(issues, [{ ...issues[0]!, loc: ['body', name], type: 'unicode_invalid' }]);
    }
  });

  test.serial(
    `${id}: a chunked body without a length is accepted like one with a length, and other media types are a 415`,
    async (t) => {
      const caller = await createCaller(stack);
      const parts = createParts(bounds[id], caller);
      const bytes = new TextEncoder().encode(JSON.stringify(parts.body));
      const inChunks = new ReadableStream<Uint8Array>({
        start(controller) {
          for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
          controller.close();
        },
      });
      checkOutcome(t, operation, await send(operation, caller, parts, { text: inChunks }));
      for (const type of [
        'text/plain',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
        'x',
      ]) {
        const { status } = await send(operation, caller, parts, { headers: { 'content-type': type } });
        t.is(status, 415, type);
      }
      const utf16 = { 'content-type': 'application/json; charset=utf-16' };
      t.is((await send(operation, caller, parts, { headers: utf16 })).status, 415);
      const zipped = { 'content-encoding': 'gzip' };
      t.is((await send(operation, caller, parts, { headers: zipped })).status, 415);
      const large = JSON.stringify({ ...parts.body, more: 'x'.repeat(64_000) });
      t.is((await send(operation, caller, parts, { text: large })).status, 413);
    },
  );
}

const ignoredBodies: readonly SendOptions[] = [
  { text: '{"a":' },
  { text: 'a=1', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
  { text: 'x'.repeat(100_000), headers: { 'content-type': 'text/plain' } },
  { text: '\0\0', headers: { 'content-type': '' } },
];

for (const [id, operation] of webOperations) {
  if (operation.body !== undefined || operation.method === 'get') continue;
  test.serial(`${id}: needs no body, and ignores any`, async (t) => {
    for (const options of ignoredBodies) {
      const caller = await createCaller(stack);
      checkOutcome(t, operation, await send(operation, caller, createParts(bounds[id], caller), options));
    }
  });
}

const withQuery = webOperations.filter(([, { query }]) => query !== undefined);

test.serial('a repeated parameter is rejected, and an unknown one is ignored', async (t) => {
  const caller = await createCaller(stack);
  for (const [id, operation] of withQuery) {
    const name = namesOf(operation.query)[0]!;
    const path = operation.path.replace('{account_id}', String(caller.linkId));
    const options = { headers: { cookie: caller.client.cookieHeader } };
    const twice = await fetch(`${stack.url}/v1${path}?${name}=1&${name}=1`, options);
    t.is(twice.status, 422);
    const { detail } = (await twice.json()) as { detail: Answer['issues'] };
    t.deepEqual(detail[0]?.loc, ['query', name]);
    const unknown = { query: { [`${name}[$gt]`]: '', $where: '1', __proto__: 'x' } };
    checkOutcome(
      t,
      operation,
      await send(operation, caller, { ...createParts(bounds[id], caller), ...unknown }),
    );
  }
});

const strangePaths = ['%00', '%0d%0a', '1%2f2', '%ff', '..%2f1', '-0', '%F0%9F%94%91', '9'.repeat(5_000)];

test.serial('any invalid id in the path is a 4xx', async (t) => {
  const { client } = await createCaller(stack);
  for (const [, operation] of webOperations) {
    if (operation.pathParameters === undefined) continue;
    for (const value of strangePaths) {
      const path = operation.path.replace(/\{\w+\}/, value);
      const response = await fetch(`${stack.url}/v1${path}`, {
        method: operation.method.toUpperCase(),
        headers: { cookie: client.cookieHeader, 'x-csrf-token': client.csrfToken! },
      });
      t.true(response.status >= 400 && response.status < 500, `${path.slice(0, 100)}: ${response.status}`);
    }
  }
});
