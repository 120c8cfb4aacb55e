import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { readPrivateFile, writePrivateFile } from './private-file.ts';

/** Made on the first start and kept: data that was written under them is of no use without them. */
export interface Secrets {
  readonly masterKey: string;
  readonly redisPassword: string;
  readonly mongodbPassword: string;
  readonly s3AccessKeyId: string;
  readonly s3SecretAccessKey: string;
  /** Null until the demo account is made. */
  readonly demoApiKey: string | null;
}

const randomText = (bytes: number): string => randomBytes(bytes).toString('base64url');

const secretsPath = (dataDir: string): string => join(dataDir, 'secrets.json');

export function loadSecrets(dataDir: string): Secrets {
  const kept = readPrivateFile(secretsPath(dataDir)) as Partial<Secrets> | null;
  const secrets: Secrets = {
    masterKey: randomText(32),
    redisPassword: randomText(24),
    mongodbPassword: randomText(24),
    s3AccessKeyId: `MG${randomBytes(9).toString('hex').toUpperCase()}`,
    s3SecretAccessKey: randomText(30),
    demoApiKey: null,
    ...kept,
  };
  if (kept === null || Object.keys(secrets).some((name) => !(name in kept))) saveSecrets(dataDir, secrets);
  return secrets;
}

export function saveSecrets(dataDir: string, secrets: Secrets): void {
  writePrivateFile(secretsPath(dataDir), secrets);
}
