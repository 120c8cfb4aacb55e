import test from 'ava';
import { findSitePage } from '../../../../api/pages/site/site-pages.ts';

test('each path of the site leads to its page, and nothing else does', (t) => {
  const expected: readonly (readonly [string, string | undefined])[] = [
    ['/', 'home'],
    ['/sign-in', 'sign-in'],
    ['/models', 'models'],
    ['/models/gpt-4o', 'model'],
    ['/models/meta/llama-3', 'model'],
    ['/models/', undefined],
    ['/jobs', 'jobs'],
    ['/jobs/0194-x', 'job'],
    ['/jobs/0194-x/more', undefined],
    ['/batches/batch_1', 'batch'],
    ['/batches', undefined],
    ['/Models', undefined],
    ['/v1/models', undefined],
    ['', undefined],
  ];
  for (const [path, name] of expected) t.is(findSitePage(path)?.name, name as never, path);
});
