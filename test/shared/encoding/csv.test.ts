import test from 'ava';
import { writeCsvRow } from '../../../shared/encoding/csv.ts';

test('commas, quotes and line breaks are quoted as RFC 4180 says, and lines end with CRLF', (t) => {
  t.is(writeCsvRow(['a', 1, null, 'b']), 'a,1,,b\r\n');
  t.is(writeCsvRow(['a,b', 'say "no"', 'x\ny', 'x\ry']), '"a,b","say ""no""","x\ny","x\ry"\r\n');
});

test('a spreadsheet runs no text as a formula, and reads negative numbers as numbers', (t) => {
  for (const text of ['=1+1', '+cmd', '-cmd', '@SUM(A1)', '\tx', '-1+cmd'])
    t.is(writeCsvRow([text]), `"'${text}"\r\n`);
  t.is(writeCsvRow(['=HYPERLINK("x")']), `"'=HYPERLINK(""x"")"\r\n`);
  t.is(writeCsvRow([-1.5, '-0.000000001', '-12']), '-1.5,-0.000000001,-12\r\n');
});
