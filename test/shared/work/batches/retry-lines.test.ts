import test from 'ava';
import type { ErrorCode } from '../../../../shared/contract/error-kinds.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import {
  checkRetriable,
  retryLines,
  type RetriableBatch,
} from '../../../../shared/work/batches/retry-lines.ts';
import type { FileContent } from '../../../../shared/work/files/file-record.ts';

const batch = {
  accountId: 'account',
  status: 'completed',
  endpoint: '/v1/embeddings',
  errorFileId: 'errors',
  inputFileId: 'input',
} as RetriableBatch;

/** @param files the texts of the segments of each file */
function createDeps(files: Readonly<Record<string, readonly string[]>>) {
  const objects = new Map<string, Buffer>();
  const contents = new Map<string, FileContent>();
  for (const [id, texts] of Object.entries(files)) {
    const segments = texts.map((text, i) => ({ key: `${id} ${i}`, byteLength: Buffer.byteLength(text) }));
    for (const [i, { key }] of segments.entries()) objects.set(key, Buffer.from(texts[i]!));
    contents.set(id, { segments } as unknown as FileContent);
  }
  const deps = {
    readBytes: 0,
    files: { findContent: async (_accountId: string, id: string) => contents.get(id) ?? null },
    objects: {
      getRange: async (key: string, from: number, byteLength: number) => {
        const bytes = objects.get(key)?.subarray(from, from + byteLength) ?? null;
        deps.readBytes += bytes?.length ?? 0;
        return bytes;
      },
    },
    lose: (key: string) => objects.delete(key),
  };
  return deps;
}

const { signal } = new AbortController();

async function readRetried(deps: ReturnType<typeof createDeps>): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of retryLines(deps, batch, signal)) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

const errorLine = (id: string): string => `{"id":"r","custom_id":${JSON.stringify(id)},"response":null}\n`;
const lineOf = (id: string, input = 'a'): string => JSON.stringify({ custom_id: id, body: { input } });

test('the lines whose ids are in any part of the error file are retried as they are, in their order', async (t) => {
  const deps = createDeps({
    errors: [`${errorLine('c')}${errorLine('a')}`, errorLine('ж')],
    input: [`\ufeff${lineOf('a')}\r\n\n${lineOf('b')}\n${lineOf('ж')}\n${lineOf('c')}`],
  });
  t.is(await readRetried(deps), `${lineOf('a')}\r\n${lineOf('ж')}\n${lineOf('c')}\n`);
});

test('a line is retried by its own custom_id, not by one in its body, however long it is', async (t) => {
  const long = 'x'.repeat(300_000);
  const line = (nested: string, id: string, input: string): string =>
    `{"body":{"custom_id":"${nested}","input":"${input}"},"custom_id":"${id}"}`;
  const input = [
    line('failed', 'kept', 'short'),
    line('kept', 'failed', 'short'),
    line('failed', 'kept-long', long),
    line('kept', 'failed-long', long),
  ];
  const deps = createDeps({
    errors: [`${errorLine('failed')}${errorLine('failed-long')}`],
    input: [`${input.join('\n')}\n`],
  });
  t.is(await readRetried(deps), `${input[1]}\n${input[3]}\n`);
});

test('a line of many megabytes is read twice at most, and yielded in pieces', async (t) => {
  const bytes = 40 * 1024 * 1024;
  const input = `{"body":{"input":"${'x'.repeat(bytes)}"},"custom_id":"long"}\n`;
  const deps = createDeps({ errors: [errorLine('long')], input: [input] });
  let [total, most] = [0, 0];
  for await (const piece of retryLines(deps, batch, signal)) {
    total += piece.length;
    most = Math.max(most, piece.length);
  }
  t.is(total, input.length);
  t.true(most <= 1024 * 1024);
  t.true(deps.readBytes < 2.1 * bytes);
});

test('it is said which file is gone, also if its object was lost', async (t) => {
  const files = { errors: [errorLine('a')], input: [lineOf('a')] };
  const cases: [deps: ReturnType<typeof createDeps>, code: ErrorCode, message: RegExp][] = [
    [createDeps({ input: files.input }), 'not_found', /^The error file of the batch, errors, was deleted or/],
    [
      createDeps({ errors: files.errors }),
      'not_found',
      /^The input file of the batch, input, was deleted or/,
    ],
  ];
  const lost = createDeps(files);
  lost.lose('input 0');
  cases.push([lost, 'not_found', /was lost in the object store/]);
  for (const [deps, code, message] of cases) {
    const error = await t.throwsAsync(readRetried(deps), { instanceOf: AppError, message });
    t.is(error.code, code);
  }
});

test('a batch can be retried once it has ended with failed lines', (t) => {
  t.notThrows(() => checkRetriable(batch));
  t.throws(() => checkRetriable({ ...batch, status: 'in_progress' }), { message: /has not ended/ });
  t.throws(() => checkRetriable({ ...batch, errorFileId: null }), { message: /no failed lines/ });
});
