import { pythonNotation, writeLiteral } from '../../../../api/pages/write-literal.ts';
import { writeCurlHead, writeNodeClient, writePythonClient } from '../../../lib/code-parts.ts';
import type { ClientFacts } from '../../../lib/code-parts.ts';

/** A request of the playground, as it is sent. */
export interface SentRequest {
  readonly kind: 'chat' | 'image' | 'edit' | 'embedding';
  readonly body: object;
}

export interface CodeExample {
  readonly value: 'curl' | 'node' | 'python';
  readonly label: string;
  /** The name of its file; null for what is pasted into a terminal. */
  readonly file: string | null;
  readonly code: string;
}

const paths = {
  chat: '/chat/completions',
  image: '/images/generations',
  edit: '/images/edits',
  embedding: '/embeddings',
} as const;

/** Returns programs that send exactly this request. Images are jobs, whose end they wait for. */
export function writeCode(request: SentRequest, facts: ClientFacts): readonly CodeExample[] {
  return [
    { value: 'curl', label: 'curl', file: null, code: writeCurl(request, facts) },
    { value: 'node', label: 'Node.js', file: 'request.mjs', code: writeNode(request, facts) },
    { value: 'python', label: 'Python', file: 'request.py', code: writePython(request, facts) },
  ];
}

const isJob = ({ kind }: SentRequest): boolean => kind === 'image' || kind === 'edit';

/** The body comes from a here-document: pictures are longer than an argument may be, and nothing is to be quoted. */
function writeCurl(request: SentRequest, facts: ClientFacts): string {
  const command = [
    writeCurlHead(facts, paths[request.kind]),
    ...(isJob(request) ? [`  -H 'Prefer: respond-async'`] : []),
    `  --data-binary @- <<'JSON'`,
  ].join(' \\\n');
  const sent = `${command}\n${JSON.stringify(request.body, null, 2)}\nJSON`;
  if (request.kind === 'chat') return sent.replace('curl ', 'curl -N ');
  if (!isJob(request)) return sent;
  const wait = `curl "${facts.baseUrl}/jobs/$JOB_ID?wait=60" -H 'Authorization: Bearer ${facts.apiKey}'`;
  return `${sent}\n\n# JOB_ID is the id in the response. This waits for the images:\n${wait}`;
}

function writeNode(request: SentRequest, facts: ClientFacts): string {
  const body = `const body = ${JSON.stringify(request.body, null, 2)};`;
  return `${writeNodeClient(facts)}\n\n${body}\n\n${nodeEnds[request.kind]}`;
}

const nodeJob = (path: string): string => `\
let job = await client.post('${path}', { body, headers: { Prefer: 'respond-async' } });
while (job.status === 'queued' || job.status === 'active') job = await client.get(\`/jobs/\${job.id}?wait=60\`);
if (job.error) throw new Error(job.error.message);
for (const { url } of job.response.data) console.log(url);`;

const nodeEnds: Readonly<Record<SentRequest['kind'], string>> = {
  chat: `\
const stream = await client.chat.completions.create(body);
for await (const { choices, usage } of stream) {
  process.stdout.write(choices[0]?.delta.content ?? '');
  if (usage) console.log('\\n', usage);
}`,
  image: nodeJob(paths.image),
  edit: nodeJob(paths.edit),
  embedding: `\
const { data, usage } = await client.embeddings.create(body);
for (const { embedding } of data) console.log(embedding.length, embedding.slice(0, 5));
console.log(usage);`,
};

/** What OpenAI's client knows as arguments. Everything else goes into its extra_body, which adds it to the body. */
const knownArguments = [
  'model',
  'messages',
  'temperature',
  'top_p',
  'max_tokens',
  'frequency_penalty',
  'presence_penalty',
  'reasoning_effort',
  'stream',
  'stream_options',
  'input',
  'dimensions',
  'encoding_format',
];

const toPython = (value: unknown, depth: number): string => writeLiteral(value, pythonNotation, depth);

function writePython(request: SentRequest, facts: ClientFacts): string {
  const head = writePythonClient(facts);
  if (isJob(request))
    return `${head}\n\nbody = ${toPython(request.body, 0)}\n\n${pythonJob(paths[request.kind])}`;
  const fields = Object.entries(request.body);
  const known = fields.filter(([name]) => knownArguments.includes(name));
  const others = fields.filter(([name]) => !knownArguments.includes(name));
  const argumentLines = [
    ...known.map(([name, value]) => `    ${name}=${toPython(value, 1)},`),
    ...(others.length === 0 ? [] : [`    extra_body=${toPython(Object.fromEntries(others), 1)},`]),
  ].join('\n');
  return request.kind === 'chat'
    ? `${head}\n\nstream = client.chat.completions.create(\n${argumentLines}\n)\n${pythonChatEnd}`
    : `${head}\n\nresponse = client.embeddings.create(\n${argumentLines}\n)\n${pythonEmbeddingEnd}`;
}

const pythonChatEnd = `\
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
    if chunk.usage:
        print("\\n", chunk.usage)`;

const pythonEmbeddingEnd = `\
for item in response.data:
    print(len(item.embedding), item.embedding[:5])
print(response.usage)`;

const pythonJob = (path: string): string => `\
job = client.post("${path}", cast_to=object, body=body, options={"headers": {"Prefer": "respond-async"}})
while job["status"] in ("queued", "active"):
    job = client.get(f"/jobs/{job['id']}?wait=60", cast_to=object)
if job["error"]:
    raise SystemExit(job["error"]["message"])
for image in job["response"]["data"]:
    print(image["url"])`;
