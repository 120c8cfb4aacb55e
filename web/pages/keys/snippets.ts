/** What the examples say: all of them call the same model in the same way. */
export interface SnippetFacts {
  /** With the version segment. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly model: string;
}

export interface Snippet {
  readonly value: string;
  /** The name of the client. */
  readonly label: string;
  /** The name of its file; null for what is pasted into a terminal. */
  readonly file: string | null;
  readonly code: string;
}

/** Stands for the key until the user reveals it. */
export const keyPlaceholder = 'YOUR_API_KEY';

const quote = (text: string): string => `'${text.replaceAll(/[\\']/g, String.raw`\$&`)}'`;
/** Quotes of JSON are also quotes of Python. */
const quoteDouble = (text: string): string => JSON.stringify(text);
/** For sh. */
const quoteShell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** Returns complete programs that send a first chat, one for each client. */
export function writeSnippets(facts: SnippetFacts): readonly Snippet[] {
  return [
    { value: 'curl', label: 'curl', file: null, code: writeCurl(facts) },
    { value: 'node', label: 'Node.js', file: 'hello.mjs', code: writeNode(facts) },
    { value: 'python', label: 'Python', file: 'hello.py', code: writePython(facts) },
    { value: 'langchain', label: 'LangChain', file: 'hello_langchain.py', code: writeLangChain(facts) },
    { value: 'ai-sdk', label: 'AI SDK', file: 'hello-ai.mjs', code: writeAiSdk(facts) },
  ];
}

const writeCurl = ({ baseUrl, apiKey, model }: SnippetFacts): string => `\
curl ${quoteShell(`${baseUrl}/chat/completions`)} \\
  -H ${quoteShell(`Authorization: Bearer ${apiKey}`)} \\
  -H 'Content-Type: application/json' \\
  -d ${quoteShell(`{"model": ${quoteDouble(model)}, "messages": [{"role": "user", "content": "Hello!"}]}`)}`;

const writeNode = ({ baseUrl, apiKey, model }: SnippetFacts): string => `\
// npm install openai
import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: ${quote(baseUrl)},
  apiKey: ${quote(apiKey)},
});

const completion = await client.chat.completions.create({
  model: ${quote(model)},
  messages: [{ role: 'user', content: 'Hello!' }],
});
console.log(completion.choices[0].message.content);`;

const writePython = ({ baseUrl, apiKey, model }: SnippetFacts): string => `\
# pip install openai
from openai import OpenAI

client = OpenAI(
    base_url=${quoteDouble(baseUrl)},
    api_key=${quoteDouble(apiKey)},
)

completion = client.chat.completions.create(
    model=${quoteDouble(model)},
    messages=[{"role": "user", "content": "Hello!"}],
)
print(completion.choices[0].message.content)`;

const writeLangChain = ({ baseUrl, apiKey, model }: SnippetFacts): string => `\
# pip install langchain-openai
from langchain_openai import ChatOpenAI

chat = ChatOpenAI(
    base_url=${quoteDouble(baseUrl)},
    api_key=${quoteDouble(apiKey)},
    model=${quoteDouble(model)},
)

print(chat.invoke("Hello!").content)`;

const writeAiSdk = ({ baseUrl, apiKey, model }: SnippetFacts): string => `\
// npm install ai @ai-sdk/openai-compatible
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText } from 'ai';

const gateway = createOpenAICompatible({
  name: 'gateway',
  baseURL: ${quote(baseUrl)},
  apiKey: ${quote(apiKey)},
});

const { text } = await generateText({ model: gateway(${quote(model)}), prompt: 'Hello!' });
console.log(text);`;
