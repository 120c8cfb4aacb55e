import { quoteShell } from '../../../api/pages/quote-shell.ts';
import {
  quoteJs,
  quotePython,
  writeCurlHead,
  writeNodeClient,
  writePythonClient,
  type ClientFacts,
} from '../../lib/code-parts.ts';

/** What the examples say: all of them call the same model in the same way. */
export interface SnippetFacts extends ClientFacts {
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

const writeCurl = (facts: SnippetFacts): string => `\
${writeCurlHead(facts, '/chat/completions')} \\
  -d ${quoteShell(`{"model": ${quotePython(facts.model)}, "messages": [{"role": "user", "content": "Hello!"}]}`)}`;

const writeNode = (facts: SnippetFacts): string => `\
${writeNodeClient(facts)}

const completion = await client.chat.completions.create({
  model: ${quoteJs(facts.model)},
  messages: [{ role: 'user', content: 'Hello!' }],
});
console.log(completion.choices[0].message.content);`;

const writePython = (facts: SnippetFacts): string => `\
${writePythonClient(facts)}

completion = client.chat.completions.create(
    model=${quotePython(facts.model)},
    messages=[{"role": "user", "content": "Hello!"}],
)
print(completion.choices[0].message.content)`;

const writeLangChain = ({ baseUrl, apiKey, model }: SnippetFacts): string => `\
# pip install langchain-openai
from langchain_openai import ChatOpenAI

chat = ChatOpenAI(
    base_url=${quotePython(baseUrl)},
    api_key=${quotePython(apiKey)},
    model=${quotePython(model)},
)

print(chat.invoke("Hello!").content)`;

const writeAiSdk = ({ baseUrl, apiKey, model }: SnippetFacts): string => `\
// npm install ai @ai-sdk/openai-compatible
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText } from 'ai';

const gateway = createOpenAICompatible({
  name: 'gateway',
  baseURL: ${quoteJs(baseUrl)},
  apiKey: ${quoteJs(apiKey)},
});

const { text } = await generateText({ model: gateway(${quoteJs(model)}), prompt: 'Hello!' });
console.log(text);`;
