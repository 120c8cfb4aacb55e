/**
 * A mistake by the operator who started the process. The message is meant for them and needs no stack. It is in a
 * separate file because loading the schema in `config.ts` takes a third of a second, and the clients that throw this
 * need no schema.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}
