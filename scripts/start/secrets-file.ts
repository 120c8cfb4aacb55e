import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { compileChecker } from '../../shared/contract/validation.ts';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import { useDataFile } from './prepare-data-dir.ts';
import { readPrivateFile, writePrivateFile } from './private-file.ts';

/** A single word, because it is used in headers, URLs and lines of files. */
const Secret = Type.String({ minLength: 1, pattern: '^[A-Za-z0-9_-]+$' });

/** Created on the first start and kept, because data written with these secrets is useless without them. */
export const Secrets = Type.Object({
  masterKey: Type.String({ minLength: 32 }),
  mongodbPassword: Secret,
  s3AccessKeyId: Secret,
  s3SecretAccessKey: Secret,
  smtpPassword: Secret,
  /** Null until the demo account is created. */
  demoAccountId: Type.Union([Secret, Type.Null()]),
  /** Also null if the demo account's key was replaced by one that cannot be shown. */
  demoApiKey: Type.Union([Secret, Type.Null()]),
});
export type Secrets = Readonly<Static<typeof Secrets>>;

const checkSecrets = compileChecker(Secrets, 'json');

const randomText = (bytes: number): string => randomBytes(bytes).toString('base64url');

const secretsPath = (dataDir: string): string => join(dataDir, 'secrets.json');

/** @throws ConfigError if the file cannot be read or written, or is damaged */
export function loadSecrets(dataDir: string): Secrets {
  const stored = readStored(dataDir);
  const secrets: Secrets = {
    masterKey: randomText(32),
    mongodbPassword: randomText(24),
    s3AccessKeyId: `MG${randomBytes(9).toString('hex').toUpperCase()}`,
    s3SecretAccessKey: randomText(30),
    smtpPassword: randomText(24),
    demoAccountId: null,
    demoApiKey: null,
    ...stored,
  };
  const [fault] = checkSecrets(secrets);
  if (fault !== undefined) throw damaged(dataDir, `"${fault.loc.join('.')}" ${fault.msg}`);
  if (stored === null || Object.keys(secrets).some((name) => !(name in stored)))
    saveSecrets(dataDir, secrets);
  return secrets;
}

export function saveSecrets(dataDir: string, secrets: Secrets): void {
  const path = secretsPath(dataDir);
  useDataFile(dataDir, path, () => writePrivateFile(path, secrets));
}

function readStored(dataDir: string): Partial<Secrets> | null {
  const path = secretsPath(dataDir);
  let stored: unknown;
  try {
    stored = useDataFile(dataDir, path, () => readPrivateFile(path));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw damaged(dataDir, 'it is empty, truncated or not JSON', error);
  }
  if (stored !== undefined && (typeof stored !== 'object' || stored === null || Array.isArray(stored)))
    throw damaged(dataDir, 'it does not contain a JSON object');
  return stored ?? null;
}

/** The file is never replaced automatically, because its master key decrypts the stored data. */
function damaged(dataDir: string, reason: string, cause?: unknown): ConfigError {
  return new ConfigError(
    `${secretsPath(dataDir)} is damaged: ${reason}. Restore it from a copy. If there is none, move the file away, and the ` +
      'next start creates another: accounts and their keys keep working, but keys stored so far can no longer be shown.',
    { cause },
  );
}
