/**
 * A mistake of whoever started the process; its message is for them and needs no stack. It has a file of its own
 * because loading the schema in `config.ts` takes a third of a second, and the clients that throw this need no schema.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}
