"""What people say to an agent, in four languages: tables, read by query/gate/gate.py.

Folded: lower case, `'` for every apostrophe, е for ё. Phrases are apart by `|`; a word that ends with `*`
stands for every word that begins so, one that begins with `*` for every word that ends so.
"""

import msgspec

from memlog.query.facts.topics import FAVORITE, OWN


def _own(language: str, ending: str = "") -> str:
    """The words that say that a topic is somebody's own, or a favourite one: as those of facts."""
    favorite = (word + ending for word in FAVORITE[language].split())
    return "|".join(dict.fromkeys(word.replace("ё", "е") for word in (*favorite, *OWN[language].split())))


class GateWords(msgspec.Struct, frozen=True):
    """The phrases of one language.

    greetings, acknowledgements: say by themselves that nothing is asked; so does any row of them.
    openings: the same, with whatever stands behind them: `thanks for the help`.
    fillers: say nothing beside those.
    memory: point at what was said, or is to be kept.
    asks: what a question begins with, where nothing else says that it is one.
    asks_anywhere: the same, wherever in a sentence it stands.
    """

    greetings: str
    acknowledgements: str
    openings: str
    fillers: str
    memory: str
    asks: str
    asks_anywhere: str = ""


WORDS = {
    "english": GateWords(
        greetings="hi|hello|hey|hiya|yo|howdy|greetings|good morning|good afternoon|good evening|good night"
        "|good day|morning|how are you|how are you doing|how's it going|how is it going|how do you do"
        "|how have you been|what's up|whats up|sup|nice to meet you|nice to see you|long time no see"
        "|welcome back|bye|bye bye|goodbye|see you|see ya|talk to you|talk soon|take care|have a nice day"
        "|have a good one|sleep well|are you there|anybody there",
        acknowledgements="ok|okay|okey|k|kk|yes|yeah|yep|yup|no|nope|nah|sure|sure thing|of course|fine"
        "|alright|all right|right|correct|exactly|indeed|true|agreed|i agree|deal|done|cool|nice|great|good"
        "|very good|perfect|excellent|awesome|amazing|wonderful|fantastic|brilliant|super|lovely|sweet|neat"
        "|wow|yay|thanks|thank you|thanks to you|thx|ty|cheers|appreciate it|i appreciate it"
        "|much appreciated|you're welcome|no problem|no worries|np|never mind|nevermind|nvm|forget it"
        "|forget about it|don't worry|don't worry about it|that worked|that works|works for me|it worked"
        "|it works|looks good|lgtm|sounds good|sounds great|good job|great job|well done|nice work|good work"
        "|good idea|got it|i see|i got it|understood|makes sense|roger|noted|will do|go ahead|go on"
        "|go for it|continue|carry on|keep going|proceed|do it|please do|stop|wait|hold on|one moment"
        "|just a moment|try again|undo|undo that|cancel|next|skip|more|haha*|ahah*|hehe*|lol|lmao|rofl|hm"
        "|hmm*|huh|oh|ah|aha|uh|um|oops|sorry|my bad|excuse me|really|seriously|are you sure|are you serious"
        "|are you kidding|no way|oh my god|omg|exactly what i wanted|just what i wanted|what i wanted"
        "|exactly what i needed|just what i needed|love it|i love it|i like it|not bad|good enough"
        "|interesting|funny|congrats|congratulations|me too|same here|you're right|you are right"
        "|fair enough|i don't know|idk|no idea|maybe|perhaps|whatever|that's all|that's it",
        openings="thanks for|thank you for|thx for|see you|talk to you|have a nice|have a good|have a great"
        "|good luck",
        fillers="please|so much|very much|a lot|again|there|then|now|just|so|too|well|and|but|very|to me"
        "|for me|that's|that is|that was|it's|it is|it was|everyone|all|everybody|friend|buddy|mate|bro|dude"
        "|man|tomorrow|later|soon|today|tonight",
        memory="remember*|recall*|remind*|forget*|forgot*|memory|memories|usual|usually|as always"
        "|like always|last time|last night|last week|last month|last year|previous|previously|earlier"
        "|yesterday|the other day|ago|as before|like before|said before|back then|you said|you told"
        "|you mentioned|you promised|you know|i said|i told|i mentioned|we said|we talked|we spoke"
        "|we discussed|we decided|we agreed|we chose|prefer*|keep in mind|take a note|make a note"
        "|note that|from now on|about me|who am i|our|mine|" + _own("english"),
        asks="what*|who*|whom|when|where*|which|why|how|is|are|was|were|am i|did|does|do i|do you|do we"
        "|do they|has|have i|have you|have we|have they|can i|can you|can we|could i|could you|could we"
        "|should i|should we|shall we|will you|will it|will i|will we|would you|would it|may i|any idea"
        "|tell me|show me|explain",
    ),
    "russian": GateWords(
        greetings="привет|приветик|приветствую|здравствуй|здравствуйте|здорово|здарова|хай|доброе утро"
        "|добрый день|добрый вечер|доброй ночи|спокойной ночи|как дела|как ты|как жизнь|как поживаешь"
        "|как настроение|что нового|пока|до свидания|до встречи|до завтра|до связи|увидимся|всего доброго"
        "|всего хорошего|хорошего дня|хорошего вечера|рад видеть|с возвращением|алло|ты тут|ты здесь",
        acknowledgements="ок|окей|ага|угу|да|нет|неа|не|конечно|разумеется|хорошо|ладно|давай|давайте|идет"
        "|пойдет|договорились|понял|поняла|понятно|ясно|принято|спасибо|спс|благодарю|пожалуйста|не за что"
        "|отлично|супер|класс|классно|круто|прекрасно|замечательно|великолепно|шикарно|молодец|умница"
        "|огонь|верно|точно|правильно|именно|согласен|согласна|то что нужно|то что надо|все верно"
        "|работает|заработало|получилось|сработало|готово|сделано|продолжай|продолжайте|дальше|поехали"
        "|вперед|стоп|стой|хватит|подожди|погоди|минутку|секунду|отмена|отмени|еще раз|попробуй еще раз"
        "|не надо|не нужно|не стоит|не важно|неважно|забудь|забей|проехали|ничего|ничего страшного"
        "|нормально|норм|не переживай|извини|извините|прости|простите|виноват|ой|ох|ах|ого|вау|ух ты"
        "|ну ты даешь|ничего себе|да ладно|серьезно|правда|неужели|ты уверен|уверен|ахах*|хах*|лол|хм*|мда"
        "|может быть|возможно|наверное|не знаю|без понятия|поздравляю",
        openings="спасибо за|спасибо что|благодарю за|увидимся|хорошего|удачи",
        fillers="очень|большое|огромное|все|ну|и|а|но|тогда|так|вот|же|уж|бро|брат|друг|дружище|тебе|вам"
        "|снова|опять|тоже|завтра|сегодня|за помощь|просто|это|мне",
        memory="помн*|запомн*|вспомн*|напомн*|напомин*|не забуд*|забудь*|забыл*|как обычно|обычн*"
        "|как всегда|в прошлый раз|в прошлом|на прошлой|прошлый раз|раньше|прежде|ранее|до этого|вчера"
        "|на днях|недавно|мы говорили|обсуждали|мы решили|договорились|ты говорил*|ты сказал*|вы говорили"
        "|я говорил*|я сказал*|рассказывал*|упоминал*|предпоч*|привычк*|имей в виду|учти|обо мне|про меня"
        "|кто я|наш|наша|наше|наши|нашего|нашей|нашу|наших|нашим|меня зовут|" + _own("russian"),
        asks="что|че|чего|чем|чему|о чем|кто|кого|кому|кем|когда|где|куда|откуда|как|сколько|како*|каки*"
        "|какая|какую|почему|зачем|чей|чья|чье|чьи|котор*|есть ли|в како*|в каки*|на како*|на каки*|с како*"
        "|с каки*|у кого|с кем|для кого|во сколько|до скольки|не подскажешь|подскажи|расскажи|скажи|знаешь"
        "|не знаешь|можешь|сможешь|можно|объясни|покажи",
        asks_anywhere="ли",
    ),
    "chinese": GateWords(
        greetings="你好|您好|大家好|嗨|哈喽|嘿|喂|早|早安|早上好|上午好|中午好|下午好|晚上好|晚安|最近怎么样"
        "|最近好吗|你好吗|吃了吗|在吗|好久不见|欢迎回来|再见|拜拜|拜|回头见|回头聊|明天见|明天聊|下次见"
        "|下次聊|待会儿见|保重|周末愉快",
        acknowledgements="好|好的|好吧|好啊|好呀|好嘞|行|行吧|可以|没问题|当然|嗯|哦|噢|喔|啊|对|对的|没错"
        "|是的|是啊|不是|不用|不用了|不要|不必|不行|算了|没事|没关系|不客气|不用谢|谢谢|谢谢你|谢谢您|多谢"
        "|感谢|非常感谢|辛苦了|辛苦|收到|明白|明白了|懂了|知道了|了解|了解了|清楚了|同意|赞|太好了|太棒了"
        "|真棒|棒|很好|非常好|不错|完美|厉害|牛|漂亮|成功了|搞定|搞定了|可以了|行了|好了|完成了|就这样"
        "|就这样吧|就这么办|继续|接着|接着说|开始吧|停|停下|等等|等一下|稍等|再试一次|重试|取消|撤销|哈"
        "|呵|嘻|笑死|呃|唉|哎|哎呀|哇|天哪|真的吗|真的|是吗|真的假的|不会吧|你确定吗|确定吗|确定|抱歉|对不起"
        "|不好意思|忘了吧|别管了|无所谓|随便|也许|不知道|不清楚|恭喜|加油",
        openings="谢谢你的|谢谢你帮|感谢你|祝你",
        fillers="了|啦|吧|啊|呀|哦|嘛|呢|那|就|都|你|您|大家|今天|明天",
        memory="记得|记住|记下|记一下|别忘|不要忘|忘了|忘记|提醒|回忆|想起|上次|上回|上周|上个月|去年|昨天"
        "|前天|之前|以前|先前|刚才|那次|老样子|照旧|照常|往常|平时|一样|说过|聊过|提过|讲过|告诉过|讨论过|喜欢"
        "|偏好|习惯|最爱|我的|我们的|我家|来着|我是谁",
        asks="",
        asks_anywhere="什么|谁|哪|几点|几个|几号|多少|怎么|怎样|为什么|为何|吗|呢|是否|有没有|是不是|能不能"
        "|会不会|可不可以|何时|多久|多大|多长|请问",
    ),
    "finnish": GateWords(
        greetings="moi|moikka|moro|morjens|hei|heippa|terve|tervehdys|huomenta|hyvää huomenta|hyvää päivää"
        "|päivää|hyvää iltaa|iltaa|hyvää yötä|öitä|mitä kuuluu|miten menee|mites menee|kuinka voit|näkemiin"
        "|nähdään|palataan|kuulemiin|hyvää viikonloppua|hyvää päivänjatkoa|mukavaa päivää|kiva nähdä"
        "|oletko siellä|tervetuloa takaisin",
        acknowledgements="ok|okei|joo|juu|jep|jees|kyllä|ei|eipä|en|niin|aivan|totta|tosiaan|selvä|ymmärrän"
        "|ymmärsin|tajusin|sovittu|sopii|käy|kelpaa|hyvä|hyvää|hyvin|hyvä juttu|hienoa|hieno|mahtavaa"
        "|mahtava|loistavaa|loistava|upeaa|upea|täydellistä|täydellinen|mainiota|erinomaista|kiva|kivaa"
        "|siistiä|jes|vau|huh|kiitos|kiitti|kiitoksia|ole hyvä|olkaa hyvä|eipä kestä|ei kestä|ei se mitään"
        "|ei mitään|ei haittaa|ei hätää|ei tarvitse|ei tarvi|antaa olla|anna olla|unohda se|unohda"
        "|unohda koko juttu|sama se|ihan sama|jatka|jatka vaan|jatketaan|tehdään niin|tee niin|tehdään se"
        "|anna mennä|seis|lopeta|odota|hetki|hetkinen|peru|peruuta|kokeile uudestaan|yritä uudelleen"
        "|uudestaan|juuri näin|juuri niin|just näin|juuri sitä|se toimii|se toimi|toimii|toimi|onnistui"
        "|valmista|valmis|hah*|heh*|hm*|no|ai|aijaa|ahaa|oho|hups|sori|anteeksi|oikeasti|ihanko totta"
        "|todellako|niinkö|oletko varma|ootko varma|älä viitsi|ehkä|kai|en tiedä|onnea",
        openings="kiitos kun|kiitos että|kiitos avusta|nähdään|hyvää matkaa|mukavaa",
        fillers="taas|vain|vaan|sitten|nyt|tosi|todella|erittäin|paljon|oikein|ihan|kaikki|huomenna"
        "|myöhemmin|siis|ja|mutta|avusta|sulle|sinulle",
        memory="muist*|unohda*|unohdi*|tavallis*|niin kuin aina|kuten aina|kuin aina|yleensä|normaalisti"
        "|viimeksi|viime kerralla|viime viikolla|viime kuussa|viime vuonna|aiemmin|aikaisemmin|ennen"
        "|äskettäin|eilen|toissapäivänä|sanoin|sanoit|kerroin|kerroit|mainitsin|mainitsit|puhuttiin"
        "|puhuimme|sovittiin|sovimme|päätettiin|päätimme|lupasit|mieluiten|tuttuun tapaan|entiseen tapaan"
        "|minusta|meidän|kuka minä olen|kuka mä oon|" + _own("finnish", "*"),
        asks="mikä|mitä|mitkä|minkä|millä|miksi|miten|milloin|koska|missä|mistä|mihin|minne|kuka|ketä|kenen"
        "|kenelle|ketkä|kuinka|paljonko|montako|kumpi|kumman|millai*|minkälai*|kerro|näytä|selitä|*ko|*kö"
        "|entä|entäs",
    ),
}
"""The tables, by language."""
