import { ConfigError } from '../../shared/platform/runtime/config-error.ts';

/**
 * Packages that only the embedded servers import, and the variables that replace those servers. package.json lists
 * these packages as optional: a deployment with its own stores, such as the Docker image, omits them.
 */
const embeddedServers = {
  MongoDB: { packages: ['lmdb'], instead: 'MONGODB_URL' },
  S3: { packages: ['sorted-btree'], instead: 'S3_ENDPOINT with its keys' },
  SMTP: { packages: ['smtp-server', 'postal-mime'], instead: 'SMTP_URL' },
} as const;

/** @throws ConfigError if a package of the embedded server is not installed */
export function checkEmbeddedPackages(
  server: keyof typeof embeddedServers,
  resolve: (name: string) => string = (name) => import.meta.resolve(name),
): void {
  const { packages, instead } = embeddedServers[server];
  const missing = packages.filter((name) => !isInstalled(name, resolve));
  if (missing.length === 0) return;
  throw new ConfigError(
    `The embedded ${server} server needs packages that are not installed: ${missing.join(', ')}. Run "npm ci", or set ${instead}.`,
  );
}

function isInstalled(name: string, resolve: (name: string) => string): boolean {
  try {
    resolve(name);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return false;
    throw error;
  }
}
