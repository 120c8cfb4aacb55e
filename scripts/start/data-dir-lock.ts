import { join, resolve } from 'node:path';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import { prepareDataDir, useDataFile } from './prepare-data-dir.ts';
import { releaseLockFile, takeLockFile } from '../processes/lock-file.ts';
import { identifyProcess, isRunning, type ProcessIdentity } from '../processes/process-identity.ts';
import { writePrivateFile } from './private-file.ts';

/** In a file of other software, the optional fields may be missing. */
interface Holder extends ProcessIdentity {
  readonly since?: string;
  /** The processes of this supervisor, so that the next one can end those that a kill -9 left behind. */
  readonly parts?: Record<string, ProcessIdentity>;
}

export interface DataDirLock {
  /** Parts of an earlier supervisor that are still running. */
  readonly leftovers: Readonly<Record<string, ProcessIdentity>>;
  /** Records the process that a part runs as, or null if it is not running. */
  recordPart(name: string, pid: number | null): void;
  release(): void;
}

/** Delay before the list of running parts is written again after a failure. */
const retryMs = 1_000;

/**
 * Locks DATA_DIR for this supervisor. Takes over a lock whose holder is gone.
 * @throws ConfigError that identifies the holder, or explains why the folder cannot be used
 */
export function lockDataDir(dataDir: string): DataDirLock {
  prepareDataDir(dataDir);
  const path = join(dataDir, 'supervisor.json');
  const parts: Record<string, ProcessIdentity> = {};
  const self = { ...identifyProcess(process.pid), since: new Date().toISOString() };
  const replaced = useDataFile(dataDir, path, () =>
    takeLockFile<Holder>(path, { ...self, parts }, (holder) => createInUseError(dataDir, holder)),
  );
  const replacedParts = replaced.flatMap((holder) => Object.entries(holder.parts ?? {}));
  let retry: NodeJS.Timeout | undefined;
  const save = (): void => {
    clearTimeout(retry);
    try {
      writePrivateFile(path, { ...self, parts } satisfies Holder);
    } catch {
      // The disk may be full. The running parts continue. Only a start after a kill -9 of everything would not find the
      // parts that were not recorded.
      retry = setTimeout(save, retryMs).unref();
    }
  };
  return {
    leftovers: Object.fromEntries(replacedParts.filter(([, part]) => isRunning(part))),
    recordPart(name, pid) {
      if (pid === null) delete parts[name];
      else parts[name] = identifyProcess(pid);
      save();
    },
    release() {
      clearTimeout(retry);
      try {
        releaseLockFile(path);
      } catch {
        // If the lock remains, it is stale for the next start.
      }
    },
  };
}

const createInUseError = (dataDir: string, { pid, since }: Holder): ConfigError =>
  new ConfigError(
    `${resolve(dataDir)} is in use by another "npm start" (pid ${pid}) since ${since ?? 'an unknown time'}.\n` +
      `Stop it, or set DATA_DIR (and PORT) to run a second gateway.`,
  );
