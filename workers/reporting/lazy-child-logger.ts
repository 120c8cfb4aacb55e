import type { Logger } from '../../shared/platform/runtime/logger.ts';

/**
 * Creates a child logger when it is first used. Creating one takes about as long as logging a line, and most requests
 * log nothing.
 */
export function createLazyChild(log: Logger, bindings: object): Logger {
  let child: Logger | undefined;
  return new Proxy(log, {
    get(_log, property) {
      child ??= log.child(bindings);
      return Reflect.get(child, property, child) as unknown;
    },
  });
}
