import test from 'ava';
import { writeCsvRow } from '../../../shared/encoding/csv.ts';
import { toExcelCsv, type ExcelOptions } from '../../../api/pages/excel-csv.ts';

/** Sends the text in parts of some bytes. */
async function convert(csv: string, options: ExcelOptions, partBytes: number): Promise<string> {
  const bytes = new TextEncoder().encode(csv);
  const parts = Array.from({ length: Math.ceil(bytes.length / partBytes) }, (_, i) =>
    bytes.slice(i * partBytes, (i + 1) * partBytes),
  );
  const sent = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
  return Buffer.from(await new Response(toExcelCsv(sent, options)).arrayBuffer()).toString();
}

const rows = [
  ['created_at', 'model_name', 'details', 'cost_request'],
  ['2026-11-29T21:05:09.123Z', 'demo-echo', 'Не «так», а "эдак"; да\nи ещё', '-0.000000012'],
  ['2026-11-30', null, '=1+1', 12],
  ['2026-11-30', 'a;b', '1.5.2', '1e5'],
];
const csv = rows.map(writeCsvRow).join('');

test('Russian Excel gets its encoding, separator, decimal mark and times', async (t) => {
  for (const partBytes of [1, 7, 10_000]) {
    const converted = await convert(csv, { language: 'ru', timeZone: 'Europe/Moscow' }, partBytes);
    t.is(
      converted,
      '\uFEFFcreated_at;model_name;details;cost_request\r\n' +
        '2026-11-30 00:05:09;demo-echo;"Не «так», а ""эдак""; да\nи ещё";-0,000000012\r\n' +
        `2026-11-30;;"'=1+1";12\r\n` +
        '2026-11-30;"a;b";1.5.2;1e5\r\n',
    );
  }
});

test('English Excel gets the same values with a comma between them', async (t) => {
  const converted = await convert(csv, { language: 'en', timeZone: 'UTC' }, 10_000);
  t.is(converted, `\uFEFF${csv.replace('2026-11-29T21:05:09.123Z', '2026-11-29 21:05:09')}`);
});

test('a text of a caller that looks like a time but is none does not end the file', async (t) => {
  const poisoned = writeCsvRow(['2026-13-45T99:99:99Z', 'after']);
  const converted = await convert(poisoned, { language: 'en', timeZone: 'UTC' }, 10_000);
  t.is(converted, '\uFEFF2026-13-45T99:99:99Z,after\r\n');
});

test('a text of a caller is no formula in spreadsheets whose separator is a semicolon either', (t) => {
  // Russian Excel opens the plain file by a double click, and ends the cell at the semicolon.
  const row = writeCsvRow(["a;=cmd|' /C calc'!A0"]);
  t.false(
    row.split(';').some((cell) => /^[=+\-@]/.test(cell)),
    row,
  );
});
