import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { checkEnvironment } from '../../../scripts/start/check-environment.ts';
import { removeEndpoints, writeEndpoints } from '../../../scripts/start/endpoints-file.ts';
import { loadSecrets, saveSecrets } from '../../../scripts/start/secrets-file.ts';
import { ConfigError } from '../../../shared/platform/runtime/config-error.ts';
import { endpointsPath, readEndpoints, readEnvironment } from '../../../shared/platform/config/config.ts';
import { makeFolder } from './fake-parts.ts';

const modeOf = (path: string): number => statSync(path).mode & 0o777;

test('the endpoints file is readable only by its owner, and is removed by a stop', (t) => {
  const folder = makeFolder(t);
  writeEndpoints(folder, { REDIS_URL: 'redis://:secret@127.0.0.1:1' });
  t.is(modeOf(endpointsPath(folder)), 0o600);
  t.deepEqual(readEndpoints(folder), { REDIS_URL: 'redis://:secret@127.0.0.1:1', pid: process.pid });
  t.deepEqual(readdirSync(folder), ['endpoints.json']);
  removeEndpoints(folder);
  t.false(existsSync(endpointsPath(folder)));
});

test('the endpoints of another supervisor are not removed', (t) => {
  const folder = makeFolder(t);
  writeFileSync(endpointsPath(folder), JSON.stringify({ pid: process.pid + 1 }));
  removeEndpoints(folder);
  t.true(existsSync(endpointsPath(folder)));
});

test('secrets are created once, do not change afterwards, and are readable only by their owner', (t) => {
  const folder = makeFolder(t);
  const first = loadSecrets(folder);
  t.is(modeOf(join(folder, 'secrets.json')), 0o600);
  t.true(first.masterKey.length >= 32);
  saveSecrets(folder, { ...first, demoApiKey: 'mg-x' });
  t.deepEqual(loadSecrets(folder), { ...first, demoApiKey: 'mg-x' });
  t.not(loadSecrets(makeFolder(t)).masterKey, first.masterKey);
});

test('in production no embedded part is used, and all missing settings are reported together', async (t) => {
  const env = { NODE_ENV: 'production', REDIS_URL: 'redis://10.0.0.1' };
  const error = await t.throwsAsync(checkEnvironment(env, readEnvironment(env)), { instanceOf: ConfigError });
  const missing = 'MONGODB_URL, S3_ENDPOINT, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, SMTP_URL, MASTER_KEY';
  t.true(error?.message.endsWith(`: ${missing}`));
});

test('if S3_ENDPOINT is set, the S3 credentials must be set, too', async (t) => {
  const env = { S3_ENDPOINT: 'http://10.0.0.1:9000', AWS_ACCESS_KEY_ID: 'a' };
  await t.throwsAsync(checkEnvironment(env, readEnvironment(env)), {
    message: /too: AWS_SECRET_ACCESS_KEY$/,
  });
  await t.notThrowsAsync(checkEnvironment({}, readEnvironment({})));
});
