import test, { type ExecutionContext } from 'ava';
import { DocumentReader } from '../../../api/files/document-reader.ts';
import type { FileAnswer, FileRequest } from '../../../api/files/file-content.ts';
import { countTokens } from '../../../shared/pricing/count-tokens.ts';
import { makePdf, toDataUri } from '../../support/make-pdf.ts';
import { makeZip } from '../../support/make-zip.ts';

type ReadOptions = Partial<FileRequest> & {
  readonly accountId?: string;
  readonly mediaType?: string;
  readonly signal?: AbortSignal;
};

function useReader(t: ExecutionContext, timeoutMs?: number) {
  const documents = new DocumentReader(timeoutMs);
  t.teardown(() => documents.close());
  return async (bytes: Buffer, options: ReadOptions = {}): Promise<FileAnswer> => {
    const { accountId = 'a', mediaType, signal = new AbortController().signal, ...more } = options;
    const request: FileRequest = {
      filename: '',
      dataUri: toDataUri(bytes, mediaType),
      maxTokens: 1_000_000,
      tokensPerPage: 258,
      tokensPerPicture: 1_445,
      tokenizer: 'o200k_base',
      ...more,
    };
    return await documents.read(accountId, request, signal);
  };
}

/** Unpacks to hundreds of megabytes of text on one page. */
const bomb = makePdf([' '.repeat(1_000)], { repeat: 300_000 });

test('of a file its count comes back and none of its text, whatever it unpacks to', async (t) => {
  const read = useReader(t);
  const text = 'Some words. '.repeat(200_000);
  const zip = makeZip({ 'a.txt': Buffer.from(text) });
  const counts = { textTokens: countTokens(text), textBytes: text.length, pages: 0, tokens: 0 };
  t.deepEqual(await read(zip, { mediaType: 'application/zip' }), counts);
  t.deepEqual(await read(Buffer.from(text), { mediaType: 'text/plain' }), counts);
  const twice = { ...counts, textTokens: counts.textTokens + countTokens(zip.toString('utf8')) };
  t.like(await read(zip, { mediaType: 'text/plain', maxTokens: 2_000_000 }), {
    textTokens: twice.textTokens,
  });
});

test('a file of more tokens or pages than are left of the context is too long', async (t) => {
  const read = useReader(t);
  const text = Buffer.from('Some words. '.repeat(100));
  const options = { mediaType: 'text/plain' };
  const tokens = countTokens(text.toString());
  t.like(await read(text, { ...options, maxTokens: tokens }), { textTokens: tokens });
  for (const maxTokens of [tokens - 1, 1, 0]) {
    t.like(await read(text, { ...options, maxTokens }), { fault: 'too_long' });
  }
  t.like(await read(makePdf(['a', 'b', 'c']), { maxTokens: 700 }), { fault: 'too_long', kind: 'pdf' });
});

test('a PDF that unpacks to more than a thread may hold is too large, and the next is read', async (t) => {
  const read = useReader(t);
  t.deepEqual(await read(bomb), { fault: 'too_large' });
  t.like(await read(makePdf(['alpha'])), { pages: 1 });
});

test('a PDF that takes too long is given up, and so is one whose caller has gone', async (t) => {
  const read = useReader(t, 300);
  t.deepEqual(await read(bomb), { fault: 'too_large' });
  const caller = new AbortController();
  const left = read(bomb, { signal: caller.signal });
  caller.abort(new Error('gone'));
  await t.throwsAsync(left, { message: 'gone' });
});

test('an account whose files take long keeps no other waiting', async (t) => {
  const read = useReader(t, 2_000);
  const ended: string[] = [];
  const hostile = Array.from({ length: 4 }, async () => {
    await read(bomb, { accountId: 'hostile' });
    ended.push('hostile');
  });
  await read(makePdf(['alpha']), { accountId: 'other' });
  t.true(ended.length <= 1, `${ended.length} came first`);
  await Promise.all(hostile);
});
