import type { Model } from '../../shared/contract/models.ts';

export interface Welcome {
  /** With /v1. */
  readonly baseUrl: string;
  readonly apiKey: string | null;
  readonly models: readonly Pick<Model, 'id' | 'type' | 'active'>[];
  readonly dataDir: string;
  readonly tookMs: number;
}

type ModelKind = 'embedding' | 'chat' | 'image';

/** What is printed when all runs: each command can be pasted as it is. */
export function formatWelcome({ baseUrl, apiKey, models, dataDir, tookMs }: Welcome): string {
  const key = apiKey ?? 'YOUR_KEY';
  const account =
    apiKey === null
      ? [`  No demo account. Make one:  npm run -s admin -- account create --balance 100`]
      : [`  API key    ${apiKey}   (a demo account)`];
  const lines = [
    `Ready in ${(tookMs / 1_000).toFixed(1)} s.`,
    '',
    `  API        ${baseUrl}`,
    ...account,
    `  Logs       ${dataDir}/logs`,
    `  Stop       Ctrl-C`,
    '',
    '  Try it:',
    '',
    ...formatCommands(baseUrl, key, models).flatMap((command) => [command, '']),
  ];
  return lines.join('\n');
}

function formatCommands(baseUrl: string, key: string, models: Welcome['models']): string[] {
  const authorization = `-H 'Authorization: Bearer ${key}'`;
  const post = (flags: string, path: string, body: object): string =>
    `curl ${flags} ${baseUrl}${path} ${authorization} \\\n  -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`;
  const pick = (kind: ModelKind): string | undefined =>
    models.find(({ type, active }) => type === kind && active)?.id;
  const [embedding, chat, image] = [pick('embedding'), pick('chat'), pick('image')];
  const saveImage = `node -pe 'JSON.parse(fs.readFileSync(0)).data[0].url' | xargs curl -s -o picture.png`;
  return [
    ...(embedding === undefined
      ? []
      : [
          // The numbers of three vectors would fill the screen.
          `${post('-s', '/embeddings', { model: embedding, input: ['a cat', 'a kitten', 'tax law'] })} \\\n  | cut -c 1-300`,
        ]),
    ...(chat === undefined
      ? []
      : [
          post('-sN', '/chat/completions', {
            model: chat,
            stream: true,
            messages: [{ role: 'user', content: 'Hello!' }],
          }),
        ]),
    ...(image === undefined
      ? []
      : [
          `${post('-s', '/images/generations', { model: image, prompt: 'a lighthouse at dusk', response_format: 'url' })} \\\n  | ${saveImage}`,
        ]),
    `curl -s ${baseUrl}/users/profile ${authorization}`,
  ];
}
