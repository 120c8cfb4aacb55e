import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import './batch.css';

export default function BatchPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page batch">
      <h1>{t('title')}</h1>
    </div>
  );
}
