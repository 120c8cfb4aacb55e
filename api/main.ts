import { loadConfig, readLogFormat } from '../shared/platform/config/config.ts';
import { runProcess } from '../shared/platform/runtime/lifecycle.ts';
import { createLogger } from '../shared/platform/runtime/logger.ts';
import { watchPauses } from '../shared/platform/runtime/watch-pauses.ts';
import { joinProcessGroup } from './process-group.ts';
import { rejectArguments } from './reject-arguments.ts';

const start = async () => {
  rejectArguments(process.argv.slice(2), 'dist/api/main.js');
  const config = loadConfig(process.env);
  const log = createLogger('api', config.logLevel, config.logFormat);
  watchPauses(log);
  // Node opens all modules of one import at the same time. Importing them in stages lets the process start with a limit of
  // 256 open files.
  await import('../shared/stores/open-stores.ts');
  await import('./create-services.ts');
  await import('./contract/operations.ts');
  await import('./endpoints/chat/chat.ts');
  await import('./endpoints/admin/admin-endpoints.ts');
  await import('./app.ts');
  const { startApi } = await import('./server.ts');
  const overrides = { reportsSetup: true };
  return { running: await startApi(config, process.env, log, overrides, joinProcessGroup()), log };
};

await runProcess('api', start, { logFormat: readLogFormat(process.env) });
