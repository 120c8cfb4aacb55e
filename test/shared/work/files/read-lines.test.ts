import test from 'ava';
import { readLines, type FileLine } from '../../../../shared/work/files/read-lines.ts';

/** An object, and how many of its bytes were read. */
function createObject(text: string) {
  const bytes = Buffer.from(text);
  const store = {
    readBytes: 0,
    getRange: async (_key: string, from: number, byteLength: number) => {
      store.readBytes += Math.min(byteLength, bytes.length - from);
      return bytes.subarray(from, from + byteLength);
    },
  };
  return { store, byteLength: bytes.length };
}

const maxLineBytes = 200;
const reading = { accountId: 'account', maxLineBytes, signal: new AbortController().signal };

async function readRange(
  { store, byteLength }: ReturnType<typeof createObject>,
  from = 0,
  to = byteLength,
): Promise<FileLine[]> {
  const lines: FileLine[] = [];
  for await (const line of readLines(store, { key: 'key', from, to, byteLength }, reading)) lines.push(line);
  return lines;
}

const idOf = (line: FileLine): string =>
  line.bytes === null
    ? line.customId
    : (JSON.parse(line.bytes.toString()) as { custom_id: string }).custom_id;

const filler = 'x'.repeat(maxLineBytes);

test('each line is in exactly one range, with its place, wherever the ranges meet', async (t) => {
  const texts = [
    '{"custom_id":"a","body":{}}\r',
    ` \t{"custom_id":"b","body":{"input":"${filler}"}}`,
    '{"custom_id":"ж","body":{}}',
    `{"body":{"custom_id":"${filler}"},"custom_id":"d"}\r`,
    '{"custom_id":"e"}',
  ];
  const text = `\ufeff${texts[0]}\n\n  \r\n${texts.slice(1, 4).join('\n')}\n${' '.repeat(2 * maxLineBytes)}\n${texts[4]}`;
  const object = createObject(text);
  const all = Buffer.from(text);
  for (let size = 1; size <= object.byteLength; size += 1) {
    const found: FileLine[] = [];
    for (let from = 0; from < object.byteLength; from += size)
      found.push(...(await readRange(object, from, Math.min(from + size, object.byteLength))));
    t.deepEqual(found.map(idOf), ['a', 'b', 'ж', 'd', 'e'], `ranges of ${size} bytes`);
    t.deepEqual(
      found.map(({ start, byteLength }) => all.toString('utf8', start, start + byteLength)),
      texts,
    );
  }
});

test('the custom_id of a line that is too long is its own, wherever it is', async (t) => {
  const long = `"${filler}"`;
  const cases: [line: string, id: string][] = [
    [`{"custom_id":"first","body":{"input":${long}}}`, 'first'],
    [`{"body":{"custom_id":"nested","input":${long}},"custom_id":"last"}`, 'last'],
    [`{"body":{"input":[${long},{"custom_id":"nested"}]},"custom_id":"behind"}`, 'behind'],
    [`{"note":"\\"custom_id\\":\\"quoted\\"","body":{"input":${long}},"custom_id":"own"}`, 'own'],
    [`{"body":{"input":${long}},"custom\\u005fid":"\\u0436\\n"}`, 'ж\n'],
    [`{"custom_id":"replaced","body":{"input":${long}},"custom_id":"latest"}`, 'latest'],
    [`${' '.repeat(2 * maxLineBytes)}{"custom_id":"indented","body":{}}`, 'indented'],
    [`{"body":{"input":${long}},"custom_id":"${'ж'.repeat(512)}"}`, 'ж'.repeat(512)],
  ];
  const lines = await readRange(createObject(cases.map(([line]) => `${line}\n`).join('')));
  t.true(lines.every(({ bytes }) => bytes === null));
  t.deepEqual(
    lines.map(idOf),
    cases.map(([, id]) => id),
  );
});

test('ranges within one line read only themselves', async (t) => {
  const mb = 1024 * 1024;
  const object = createObject(`{"body":{"input":"${'x'.repeat(32 * mb)}"},"custom_id":"only"}\n`);
  const ids: string[] = [];
  for (let from = 0; from < object.byteLength; from += mb)
    ids.push(...(await readRange(object, from, Math.min(from + mb, object.byteLength))).map(idOf));
  t.deepEqual(ids, ['only']);
  t.true(object.store.readBytes < 4 * object.byteLength, `${object.store.readBytes} bytes were read`);
});

test('blank lines do not keep the event loop busy', async (t) => {
  const object = createObject(`${'\n'.repeat(500_000)}{"custom_id":"a"}`);
  let turns = 0;
  let isReading = true;
  const count = (): void => {
    turns += 1;
    if (isReading) setImmediate(count);
  };
  setImmediate(count);
  const lines = await readRange(object);
  isReading = false;
  t.deepEqual(lines.map(idOf), ['a']);
  t.true(turns > 100, `${turns} turns`);
});
