/**
 * A configuration error. The message is for the operator who started the process and needs no stack trace. It is in a
 * separate file because loading the schema in `config.ts` takes a third of a second, and the clients that throw this do
 * not need the schema.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}
