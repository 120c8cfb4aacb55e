import test from 'ava';
import type { CountedFile, FileRequest } from '../../../../shared/preparing/documents/file-content.ts';
import { countTokens } from '../../../../shared/catalog/count-tokens.ts';
import { estimateInOtherVocabularies } from '../../../../shared/preparing/tokens/other-vocabularies.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { makePdf } from '../../../support/make-pdf.ts';
import { useReader, type LoggedError } from '../../../support/use-reader.ts';

/** A PDF that unpacks to hundreds of megabytes of text on one page. */
const bomb = makePdf([' '.repeat(1_000)], { repeat: 300_000 });

test('reading a file returns token counts and no text, even if the file unpacks to a large text', async (t) => {
  const read = useReader(t);
  const text = 'Some words. '.repeat(200_000);
  const counts = {
    textTokens: countTokens(text),
    textTokensInOtherVocabularies: estimateInOtherVocabularies(text),
    textBytes: text.length,
    pages: 0,
    imageTokens: 0,
    isComplete: true,
  };
  t.deepEqual(await read(Buffer.from(text), { mediaType: 'text/plain' }), counts);
  const pdf = makePdf(['Some words. '.repeat(100)], { repeat: 1_000 });
  const { textBytes } = (await read(pdf)) as CountedFile;
  t.true(textBytes > 1_000_000 && pdf.length < 20_000, `${textBytes} from ${pdf.length}`);
});

test('a file with more tokens or pages than the remaining context is too long', async (t) => {
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

test('a PDF that unpacks beyond the memory limit is too large, and the next file is still read', async (t) => {
  const read = useReader(t);
  t.deepEqual(await read(bomb), { fault: 'too_large' });
  t.like(await read(makePdf(['alpha'])), { pages: 1 });
});

test('reading a PDF is aborted if it takes too long, or if the caller disconnects', async (t) => {
  const read = useReader(t, 300);
  t.deepEqual(await read(bomb), { fault: 'too_large' });
  const caller = new AbortController();
  const cancelled = read(bomb, { signal: caller.signal });
  caller.abort(new Error('gone'));
  await t.throwsAsync(cancelled, { message: 'gone' });
});

test('slow files of one account do not block other accounts', async (t) => {
  const read = useReader(t, 2_000);
  const ended: string[] = [];
  const hostile = Array.from({ length: 4 }, async () => {
    await read(bomb, { accountId: 'hostile' });
    ended.push('hostile');
  });
  await read(makePdf(['alpha']), { accountId: 'other' });
  t.true(ended.length <= 1, `${ended.length} finished first`);
  await Promise.all(hostile);
});

test('if no other account waits, several slow files of one account are read at the same time, without a delay between them', async (t) => {
  const read = useReader(t);
  const long = makePdf(Array<string>(300).fill('Some words of a line. '.repeat(4)), { repeat: 15 });
  const results = await Promise.all(Array.from({ length: 6 }, () => read(long)));
  for (const result of results) t.like(result, { pages: 300 });
});

test('an unhandled error ends only the process that reads the file, and is logged with its cause', async (t) => {
  const logged: [LoggedError, string][] = [];
  const read = useReader(t, undefined, logged);
  const unknown = { tokenizer: 'no such vocabulary' as FileRequest['tokenizer'] };
  t.deepEqual(await read(makePdf(['some text']), unknown), { fault: 'too_large' });
  const [[{ err }, text]] = (await waitFor('the log line', () => logged.length > 0 && logged)) as [
    [LoggedError, string],
  ];
  t.is(text, 'file process: unhandled rejection');
  t.regex(err.stack ?? '', /no such vocabulary/);
  t.like(await read(makePdf(['some text'])), { pages: 1 });
});
