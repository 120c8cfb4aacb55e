import test from 'ava';
import { checkEmbeddedPackages } from '../../../scripts/start/embedded-packages.ts';
import { ConfigError } from '../../../shared/platform/runtime/config-error.ts';

test('if a package of an embedded server is missing, one sentence names it and explains what to do', (t) => {
  const resolve = (name: string): string => {
    if (name !== 'postal-mime') return name;
    return import.meta.resolve('a-package-that-nobody-installed');
  };
  t.throws(() => checkEmbeddedPackages('SMTP', resolve), {
    instanceOf: ConfigError,
    message:
      'The embedded SMTP server needs packages that are not installed: postal-mime. Run "npm ci", or set SMTP_URL.',
  });
  t.notThrows(() => checkEmbeddedPackages('S3', resolve));
});

test('all packages of the embedded servers are installed here', (t) => {
  for (const server of ['MongoDB', 'S3', 'SMTP'] as const) t.notThrows(() => checkEmbeddedPackages(server));
});
