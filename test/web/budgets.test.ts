import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { sitePages } from '../../api/pages/site/site-pages.ts';
import { WebBuild } from '../../api/pages/site/web-build.ts';

const folder = fileURLToPath(new URL('../../web', import.meta.url));

/** Of the script that a page needs before it is shown, compressed by gzip. */
const maxScriptBytes = 120_000;
const maxStyleBytes = 20_000;

const gzipBytes = (paths: readonly string[]): number =>
  paths.reduce((sum, path) => sum + statSync(join(folder, `${path}.gz`)).size, 0);

test('no page loads more script or style than its budget', async (t) => {
  const build = (await WebBuild.open(folder))!;
  for (const page of sitePages) {
    const { name } = page;
    for (const language of ['en', 'ru'] as const) {
      const { script, modules, styles } = build.listFiles(page, language);
      // The page itself and its texts are among them.
      t.true(modules.length >= 3, name);
      const bytes = gzipBytes([script, ...modules]);
      t.true(bytes < maxScriptBytes, `${name}: ${bytes} bytes of script`);
      t.true(gzipBytes(styles) < maxStyleBytes, `${name}: ${gzipBytes(styles)} bytes of style`);
      t.log(`${name} ${language}: ${bytes}`);
    }
  }
});

test('every text is compressed in both ways, and smaller than before', (t) => {
  const names = readdirSync(join(folder, 'assets'));
  const texts = names.filter((name) => /\.(?:js|css|svg)$/.test(name));
  t.true(texts.length > 20);
  for (const name of texts) {
    const size = statSync(join(folder, 'assets', name)).size;
    if (size < 1_024) continue;
    for (const ending of ['.br', '.gz'])
      t.true(statSync(join(folder, 'assets', `${name}${ending}`)).size < size, name);
  }
});

test('the application needs no exception from the policy', (t) => {
  for (const name of readdirSync(join(folder, 'assets')).filter((one) => one.endsWith('.js'))) {
    const code = readFileSync(join(folder, 'assets', name), 'utf8');
    t.notRegex(code, /\bnew Function\(|\beval\(|dangerouslySetInnerHTML:/, name);
  }
});
