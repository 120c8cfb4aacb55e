interface AddressRule {
  readonly example: string;
  readonly isValid: (value: string) => boolean;
}

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

const http: AddressRule = {
  example: 'https://gateway.example',
  isValid: (value) => isUrl(value, ['http:', 'https:']),
};

const rules: Readonly<Record<string, AddressRule>> = {
  REDIS_URL: {
    example: 'redis://:password@10.0.0.1:6379; several nodes are separated by commas',
    isValid: (value) => value.split(',').every((node) => isUrl(node.trim(), ['redis:', 'rediss:'])),
  },
  MONGODB_URL: { example: 'mongodb://user:password@10.0.0.1:27017/model_gateway', isValid: isMongoUrl },
  S3_ENDPOINT: http,
  S3_PUBLIC_URL: http,
  PUBLIC_URL: http,
  BACKUP_URL: http,
  DIRECT_URL: http,
};

/** What is wrong with variables that hold addresses. Their values are not told: they may hold passwords. */
export function findWrongAddresses(values: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(rules).flatMap(([name, { example, isValid }]) => {
    const value = values[name];
    if (typeof value !== 'string' || isValid(value)) return [];
    const hint = value.includes('@')
      ? '. Characters such as #, / and @ in a password are percent-encoded'
      : '';
    return [`${name} must be an address such as ${example}${hint}`];
  });
}
