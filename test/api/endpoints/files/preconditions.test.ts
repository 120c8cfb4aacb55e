import type { IncomingHttpHeaders } from 'node:http';
import test from 'ava';
import {
  checkPreconditions,
  isRangeCurrent,
  type PreconditionResult,
} from '../../../../api/endpoints/files/preconditions.ts';

const etag = '"abc"';
const lastModifiedMs = Date.UTC(2026, 10, 23, 12, 0, 0, 700);
const version = { etag, lastModifiedMs };
const before = 'Mon, 23 Nov 2026 11:59:59 GMT';
const exactly = 'Mon, 23 Nov 2026 12:00:00 GMT';
const after = 'Mon, 23 Nov 2026 12:00:01 GMT';

const cases: readonly [IncomingHttpHeaders, PreconditionResult][] = [
  [{}, 'proceed'],
  [{ 'if-none-match': etag }, 'unchanged'],
  [{ 'if-none-match': `"other", W/${etag}` }, 'unchanged'],
  [{ 'if-none-match': '*' }, 'unchanged'],
  [{ 'if-none-match': '"other"' }, 'proceed'],
  [{ 'if-modified-since': exactly }, 'unchanged'],
  [{ 'if-modified-since': after }, 'unchanged'],
  [{ 'if-modified-since': before }, 'proceed'],
  // Dates apply only if there is no tag.
  [{ 'if-none-match': '"other"', 'if-modified-since': after }, 'proceed'],
  [{ 'if-modified-since': 'tomorrow' }, 'proceed'],
  [{ 'if-modified-since': '2030' }, 'proceed'],
  [{ 'if-match': etag }, 'proceed'],
  [{ 'if-match': '*' }, 'proceed'],
  [{ 'if-match': `W/${etag}` }, 'failed'],
  [{ 'if-match': '"other"' }, 'failed'],
  [{ 'if-unmodified-since': exactly }, 'proceed'],
  [{ 'if-unmodified-since': before }, 'failed'],
  [{ 'if-match': etag, 'if-unmodified-since': before }, 'proceed'],
  [{ 'if-match': '"other"', 'if-none-match': etag }, 'failed'],
];

test('conditions are evaluated as HTTP specifies, with tags before dates', (t) => {
  for (const [headers, verdict] of cases)
    t.is(checkPreconditions(headers, version), verdict, JSON.stringify(headers));
});

test('If-Range applies only if it matches the current version', (t) => {
  const isCurrent = (ifRange?: string): boolean =>
    isRangeCurrent(ifRange === undefined ? {} : { 'if-range': ifRange }, version);
  t.true(isCurrent());
  t.true(isCurrent(etag));
  t.true(isCurrent(exactly));
  for (const other of [`W/${etag}`, '"other"', before, after, 'abc', '']) t.false(isCurrent(other), other);
});
