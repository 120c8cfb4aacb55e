import { ConfigError } from '../../shared/runtime/config-error.ts';
import type { readEnvironment } from '../../shared/runtime/config.ts';

const neededInProduction = [
  'REDIS_URL',
  'MONGODB_URL',
  'S3_ENDPOINT',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'SMTP_URL',
  'MASTER_KEY',
] as const;

/**
 * An embedded default never guards real money, and an S3 server of the operator's own is nothing without its keys.
 * @throws ConfigError naming all that is missing, at once
 */
export async function checkEnvironment(
  env: NodeJS.ProcessEnv,
  values: ReturnType<typeof readEnvironment>,
): Promise<void> {
  const missing = (names: readonly string[]): string => names.filter((name) => !env[name]).join(', ');
  const inProduction = values.NODE_ENV === 'production' ? missing(neededInProduction) : '';
  if (inProduction !== '') {
    throw new ConfigError(
      `NODE_ENV=production takes no embedded parts. Set these variables too: ${inProduction}`,
    );
  }
  const ofS3 =
    values.S3_ENDPOINT === undefined ? '' : missing(['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']);
  if (ofS3 !== '') throw new ConfigError(`S3_ENDPOINT is set, so set these variables too: ${ofS3}`);
  if (values.MONGODB_URL === undefined) return;
  // Loaded only here, as a supervisor without a driver is a light one. Roles would die of the address again and again.
  const { createClient } = await import('../../shared/storage/mongo-client.ts');
  await createClient(values.MONGODB_URL).close();
}
