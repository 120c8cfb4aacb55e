/**
 * Tells the operator what to change if Redis rejects the user of `REDIS_URL`, or does not know a command.
 * @param message of an error reply
 * @returns null for any other failure
 */
export function explainRedisRefusal(message: string): string | null {
  if (/^(?:WRONGPASS|NOAUTH)\b/.test(message))
    return `Redis refuses the user or the password of REDIS_URL: ${message}`;
  if (/^NOPERM\b/.test(message))
    return `The user of REDIS_URL lacks a right that the gateway needs; docs/deployment.md lists them: ${message}`;
  if (/^ERR unknown (?:command|subcommand)\b/i.test(message))
    return `Redis does not know a command that the gateway needs; it must be Redis 7.0 or later, with no command renamed: ${message}`;
  return null;
}
