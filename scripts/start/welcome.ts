import type { Model } from '../../shared/contract/models.ts';
import type { DemoAccount } from './find-demo-account.ts';

export interface Welcome {
  /** Including /v1. */
  readonly baseUrl: string;
  readonly demo: DemoAccount | null;
  readonly models: readonly Pick<Model, 'id' | 'type' | 'active'>[];
  readonly dataDir: string;
  /** Whether mails are stored on this machine instead of being sent. */
  readonly hasOutbox: boolean;
  /** Whether pages are served to browsers. */
  readonly hasPages: boolean;
  /** Whether `ADMIN_TOKEN` is set, with which operators can sign in. */
  readonly hasAdminToken: boolean;
  readonly tookMs: number;
}

type ModelKind = 'embedding' | 'chat' | 'image';

/** Formats the text printed once everything is running. Each command can be pasted into a shell unchanged. */
export function formatWelcome(welcome: Welcome): string {
  const { baseUrl, demo, models, dataDir, hasOutbox, tookMs } = welcome;
  const key = demo?.apiKey ?? 'YOUR_KEY';
  const lines = [
    `Ready in ${(tookMs / 1_000).toFixed(1)} s.`,
    '',
    ...describePages(welcome),
    `  API        ${baseUrl}`,
    `  Reference  ${new URL('/docs', baseUrl).href}`,
    ...describeDemo(demo),
    `  Logs       ${dataDir}/logs`,
    ...(hasOutbox ? [`  Mails      ${dataDir}/outbox   (codes are printed here as "DEV mail to …")`] : []),
    `  Stop       Ctrl-C`,
    '',
    '  Try it:',
    '',
    ...formatCommands(baseUrl, key, models).flatMap((command) => [command, '']),
  ];
  return lines.join('\n');
}

const admin = 'npm run -s admin --';

function describePages({ baseUrl, hasPages, hasAdminToken }: Welcome): string[] {
  if (!hasPages) return [];
  const token = hasAdminToken ? 'ADMIN_TOKEN' : `a token of "${admin} token create me --scope all"`;
  return [
    `  Pages      ${new URL('/', baseUrl).href}`,
    `  Console    ${new URL('/admin', baseUrl).href}   (for operators; sign in with ${token})`,
  ];
}

function describeDemo(demo: DemoAccount | null): string[] {
  if (demo === null) return [`  No demo account. Create one:  ${admin} account create --balance 100`];
  const { id, apiKey, banReason, missingAccount } = demo;
  const lines =
    apiKey === null
      ? [
          `  Demo account ${id}: its key was replaced and cannot be shown.`,
          `  Replace it again:  ${admin} account rotate-key ${id}`,
        ]
      : [`  API key    ${apiKey}   (a demo account)`];
  if (missingAccount !== null)
    lines.push(`             It is new: the previous one (${missingAccount}) is not in this database.`);
  if (banReason !== null)
    lines.push(`             It is banned (${banReason}). Lift the ban:  ${admin} account unban ${id}`);
  return lines;
}

function formatCommands(baseUrl: string, key: string, models: Welcome['models']): string[] {
  const authorization = `-H 'Authorization: Bearer ${key}'`;
  const post = (flags: string, path: string, body: object): string =>
    `curl ${flags} ${baseUrl}${path} ${authorization} \\\n  -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`;
  const pick = (kind: ModelKind): string | undefined =>
    models.find(({ type, active }) => type === kind && active)?.id;
  const [embedding, chat, image] = [pick('embedding'), pick('chat'), pick('image')];
  const saveImage = `node -pe 'JSON.parse(fs.readFileSync(0)).data[0].url' | xargs curl -s -o image.png`;
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
