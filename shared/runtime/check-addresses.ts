import type { TextFormat, TextFormats } from '../contract/validation.ts';

function isUrl(value: string, schemes: readonly string[]): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, hostname } = new URL(value);
  return schemes.includes(protocol) && hostname !== '';
}

/** Several hosts are separated by commas, which no URL takes. What follows them is the driver's to check. */
function isMongoUrl(value: string): boolean {
  const [, hosts] = /^mongodb(?:\+srv)?:\/\/(?:[^/?#@]*@)?([^/?#@]+)(?:[/?].*)?$/.exec(value) ?? [];
  const isHost = (host: string): boolean => host.endsWith('.sock') || URL.canParse(`http://${host}`);
  return hosts?.split(',').every(isHost) ?? false;
}

/** What is wrong with an address is told without it: it may hold a password. */
function createFormat(example: string, isValid: (value: string) => boolean): TextFormat {
  const describe = (value: string): string => {
    const hint = value.includes('@')
      ? '. Characters such as #, / and @ in a password are percent-encoded'
      : '';
    return `must be an address such as ${example}${hint}`;
  };
  return { isValid, describe };
}

/** Addresses that variables hold. */
export const addressFormats = {
  'http-url': createFormat('https://gateway.example', (value) => isUrl(value, ['http:', 'https:'])),
  'redis-urls': createFormat(
    'redis://:password@10.0.0.1:6379; several nodes are separated by commas',
    (value) => value.split(',').every((node) => isUrl(node.trim(), ['redis:', 'rediss:'])),
  ),
  'mongodb-url': createFormat('mongodb://user:password@10.0.0.1:27017/model_gateway', isMongoUrl),
} as const satisfies TextFormats;
