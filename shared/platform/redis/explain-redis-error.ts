/**
 * Explains to the operator what to change if Redis rejects the user of `REDIS_URL` or does not know a command.
 * @param message the text of an error reply
 * @returns null for any other failure
 */
export function explainRedisError(message: string): string | null {
  if (/^(?:WRONGPASS|NOAUTH)\b/.test(message))
    return `Redis rejects the user or the password in REDIS_URL: ${message}`;
  if (/^NOPERM\b/.test(message))
    return `The user in REDIS_URL lacks a permission that the gateway needs; docs/deployment.md lists them: ${message}`;
  if (/^ERR unknown (?:command|subcommand)\b/i.test(message))
    return `Redis does not know a command that the gateway needs; use Redis 7.0 or later, without renamed commands: ${message}`;
  return null;
}
