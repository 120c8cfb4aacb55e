import { quoteShell } from '../../api/pages/quote-shell.ts';
import { jsNotation, pythonNotation } from '../../api/pages/write-literal.ts';

/** Stands for the key in examples. */
export const keyPlaceholder = 'YOUR_API_KEY';

export const { writeString: quoteJs } = jsNotation;
export const { writeString: quotePython } = pythonNotation;

export interface ClientFacts {
  /** With the version segment. */
  readonly baseUrl: string;
  readonly apiKey: string;
}

/** The beginning of a program for Node: `client` is OpenAI's. */
export const writeNodeClient = ({ baseUrl, apiKey }: ClientFacts): string => `\
// npm install openai
import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: ${quoteJs(baseUrl)},
  apiKey: ${quoteJs(apiKey)},
});`;

/** The beginning of a program for Python: `client` is OpenAI's. */
export const writePythonClient = ({ baseUrl, apiKey }: ClientFacts): string => `\
# pip install openai
from openai import OpenAI

client = OpenAI(
    base_url=${quotePython(baseUrl)},
    api_key=${quotePython(apiKey)},
)`;

/** The beginning of a command of curl, up to the body. */
export const writeCurlHead = ({ baseUrl, apiKey }: ClientFacts, path: string): string => `\
curl ${quoteShell(`${baseUrl}${path}`)} \\
  -H ${quoteShell(`Authorization: Bearer ${apiKey}`)} \\
  -H 'Content-Type: application/json'`;
